"""Weights of other libraries' networks by their names: those of Keras's applications and of torchvision's.

A file of Keras's names has "layer/weight" (or "layer.weight") for each variable of the network, in our layout.  One of
torchvision's has its module names; a table says to which layer each module belongs, and its layouts are turned.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pydtconv.graph.ir.variable import as_stored
from pydtconv.interchange.safetensors import read_safetensors
from pydtconv.interchange.torch_files import read_torch
from pydtconv.layers.base.locks import turn_of
from pydtconv.naming import to_snake_case
from pydtconv.support.uninterrupted import uninterrupted

#: what reads a file, by how its name ends
READERS: Mapping[str, Callable[[Path], dict[str, np.ndarray]]] = {
    ".safetensors": read_safetensors,
    ".pth": read_torch,
    ".pt": read_torch,
}
#: weights of a layer by the names that PyTorch gives them
_PARTS = {
    "weight": ("kernel", "depthwise_kernel", "gamma"),
    "bias": ("bias", "beta"),
    "running_mean": ("moving_mean",),
    "running_var": ("moving_variance",),
}
#: a pair: the layer's name, and the module that it is in torchvision
Pairs = Iterator[tuple[str, str]]


class Leeway(NamedTuple):
    """What of a file need not fit a model.

    layers: says whether a layer may keep its weights where the file has none of its shapes.  more: how many layers,
    behind those of the model, the file may have besides.  known_names: whether the file is of a network of the zoo:
    then a `.weights.h5`, too, may have no others, and a layer gets no weights of one with another name.
    """

    layers: Callable[[Any], bool] = lambda layer: False
    more: float = 0
    known_names: bool = False

    def refusal(self, paths: Collection[str], sep: str = "/") -> str:
        """Says which layers of a file are too many; empty where none are.

        paths: of weights that the model has not.  A generator of a top's dropout is no layer.
        """
        layers = {path.rpartition(sep)[0] or path for path in paths if "seed_generator" not in path}
        expected = f"at most {self.more} layers more than those of the model" if self.more else "no other layers"
        return "" if len(layers) <= self.more else f"expected {expected}, found {len(layers)}: {min(layers)!r}, ..."


STRICT = Leeway()


def load_named_weights(model: Any, path: Path, leeway: Leeway = STRICT) -> list[str]:
    """The weights of a `.safetensors` or `.pth` file into a network of the zoo.

    Returns the layers that keep their weights by the leeway, and why.

    Raises ValueError, before anything is changed, that names what does not fit; BadFileError for damaged files.
    """
    tensors = {name: array for name, array in READERS[path.suffix](path).items() if "num_batches_tracked" not in name}
    wanted = {_plain(variable.path): variable for variable in model.variables}
    own = _by_rank(model, wanted, {_plain(name): array for name, array in tensors.items()})
    if not set(wanted) & set(own):
        own = _turned(model, tensors, str(path), leeway)
    left = []
    for layer in filter(leeway.layers, _layers(model)):
        names = [_plain(variable.path) for variable in layer._pydt_own_variables()]
        told = next((f"{name}: {text}" for name in names if (text := _difference(wanted[name], own.get(name)))), None)
        if told is not None:
            left.append(f"layer {layer.name!r} ({type(layer).__name__}): {told}")
            for name in names:
                del wanted[name]
                own.pop(name, None)
    missing = sorted(set(wanted) - set(own))
    if missing:
        raise ValueError(
            f"{path}: expected weights of {model.name}: {missing[0]!r} and {len(missing) - 1} more are not among them"
        )
    if refusal := leeway.refusal(set(own) - set(wanted)):
        raise ValueError(f"{path} does not fit the model {model.name!r}: {refusal}")
    for name, variable in wanted.items():
        if told := _difference(variable, own[name]):
            raise ValueError(f"{path}: {name}: {told}")
    found = as_stored(str(path), ((variable, own[name]) for name, variable in wanted.items()))
    with turn_of(model).taken(), uninterrupted():
        for variable, value in found:
            variable.assign(value)
    return left


def _difference(variable: Any, array: np.ndarray | None) -> str | None:
    """What keeps an array from being the variable's value."""
    if array is not None and array.shape == variable.shape:
        return None
    return f"expected shape {variable.shape}, got {'none' if array is None else array.shape}"


def _plain(name: str) -> str:
    return name.replace(".", "/").removesuffix(":0")


def _by_rank(model: Any, wanted: Iterable[str], tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Tensors by our names where a file has automatic ones: each process numbers layers of a class as it makes them."""
    kinds = {to_snake_case(type(layer).__name__) for layer in model._pydt_flatten_layers()}
    ours, theirs = _numbered(wanted, kinds), _numbered(tensors, kinds)
    table: dict[str, str] = {}
    for kind, names in theirs.items():
        more = [f"{name} (in the file)" for name in names[len(ours[kind]) :]]
        table.update(zip(names, [*ours[kind], *more], strict=False))
    return {"/".join(table.get(part, part) for part in name.split("/")): array for name, array in tensors.items()}


def _numbered(names: Iterable[str], kinds: set[str]) -> defaultdict[str, list[str]]:
    """The automatic names in the paths of variables, in the order of their numbers, by kind."""
    found = defaultdict(list)
    for part in {part for name in names for part in name.split("/")[:-1]}:
        if (kind := re.sub(r"_\d+$", "", part)) in kinds:
            found[kind].append(part)
    return defaultdict(list, {kind: sorted(parts, key=_number) for kind, parts in found.items()})


def _layers(model: Any) -> Iterator[Any]:
    for layer in model._pydt_flatten_layers():
        if layer is not model and layer._pydt_own_variables():
            yield layer


def _turned(model: Any, tensors: Mapping[str, np.ndarray], path: str, leeway: Leeway) -> dict[str, np.ndarray]:
    """torchvision's tensors by our variables' names, in our layout."""
    table = next((pairs for pattern, pairs in TABLES.items() if re.fullmatch(pattern, model.name)), None)
    if table is None:
        raise ValueError(
            f"{path}: expected weights of {model.name} by Keras's names, got {next(iter(tensors), 'none')!r}"
            + (f": {DIFFERENT[model.name]}" if model.name in DIFFERENT else "")
        )
    by_name = {layer.name: layer for layer in _layers(model)}
    found, used = {}, set()
    for layer_name, module in table(model):
        layer = by_name.get(layer_name)
        if layer is None:
            continue
        for variable in layer._pydt_own_variables():
            part = variable.path.rpartition("/")[2]
            source = next((f"{module}.{torch}" for torch, ours in _PARTS.items() if part in ours), module)
            source = module if module.endswith(".layer_scale") else source
            if source in tensors:
                used.add(source)
                found[_plain(variable.path)] = _in_our_layout(tensors[source], variable, layer, model)
            if source in tensors and part == "moving_mean":
                found[_plain(variable.path)] = tensors[source] - _bias_before(module, tensors, used)
    if refusal := leeway.refusal(set(tensors) - used, "."):
        raise ValueError(f"{path} does not fit the model {model.name!r}: {refusal}")
    return found


def _bias_before(module: str, tensors: Mapping[str, np.ndarray], used: set[str]) -> Any:
    """The bias of the convolution in front of a normalization, which has none here: it only moves the mean."""
    prefix, _, place = module.rpartition(".")
    name = f"{prefix}.{int(place) - 1}.bias" if place.isdigit() else ""
    if name not in tensors or name in used or f"{prefix}.{int(place) - 1}.running_mean" in tensors:
        return 0
    used.add(name)
    return tensors[name]


def _in_our_layout(array: np.ndarray, variable: Any, layer: Any, model: Any) -> np.ndarray:
    part = variable.path.rpartition("/")[2]
    if part == "depthwise_kernel":  # (channels * multiplier, 1, kernel) -> (kernel, channels, multiplier)
        *kernel, channels, multiplier = variable.shape
        return np.moveaxis(array.reshape(channels, multiplier, *kernel), (0, 1), (-2, -1))
    if part == "kernel" and array.ndim > 2:
        return np.moveaxis(array, (0, 1), (-1, -2))
    if part == "kernel":
        before = _flattened(layer, model)
        if before is not None:  # its inputs are pixels of channels there, channels of pixels here
            h, w, c = before
            if array.shape[1] == h * w * c:
                array = array.reshape(-1, c, h, w).transpose(0, 2, 3, 1).reshape(array.shape)
        return array.T
    return array.reshape(variable.shape) if array.size == np.prod(variable.shape) else array


def _flattened(layer: Any, model: Any) -> tuple[int, int, int] | None:
    """The images that a Flatten in front of the layer makes vectors of, through layers that change no shape."""
    tensor = layer._pydt_inbound_nodes[0].input_tensors[0] if layer._pydt_inbound_nodes else None
    while tensor is not None:
        operation = tensor._keras_history.operation
        if type(operation).__name__ not in ("Flatten", "Dropout"):
            return None
        tensor = tensor.node.input_tensors[0]
        if type(operation).__name__ == "Flatten":
            return tuple(tensor.shape[1:]) if len(tensor.shape) == 4 else None
    return None


# -- tables: which layer is which module -------------------------------------------------------------------------------


def _of_kinds(model: Any, *kinds: str) -> list[str]:
    """Names of the layers of these classes, in the order in which they were made."""
    made = [layer for layer in _layers(model) if type(layer).__name__ in kinds]
    return sorted((layer.name for layer in made), key=_number)


def _number(name: str) -> int:
    digits = re.search(r"_(\d+)$", name)
    return int(digits.group(1)) if digits else -1


def _vgg(model: Any) -> Pairs:
    """Convolutions (and normalizations) by their places in `features`, dense layers in `classifier`."""
    convolutions, norms = _of_kinds(model, "Conv2D"), _of_kinds(model, "BatchNormalization")
    if "block1_conv1" in convolutions:
        convolutions.sort()
    depth = {8: 11, 13: 16, 16: 19}[len(convolutions)]
    place, at = 0, 0
    for repeat in {11: (1, 1, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}[depth]:
        for _ in range(repeat):
            yield convolutions[at], f"features.{place}"
            if norms:
                yield norms[at], f"features.{place + 1}"
            place, at = place + (3 if norms else 2), at + 1
        place += 1
    dense = ["fc1", "fc2", "predictions"] if "block1_conv1" in convolutions else _of_kinds(model, "Dense")
    yield from zip(dense, ("classifier.0", "classifier.3", "classifier.6"), strict=False)


def _alexnet(model: Any) -> Pairs:
    yield from zip(_of_kinds(model, "Conv2D"), [f"features.{i}" for i in (0, 3, 6, 8, 10)], strict=True)
    yield from zip(_of_kinds(model, "Dense"), [f"classifier.{i}" for i in (1, 4, 6)], strict=False)


def _resnet(model: Any) -> Pairs:
    """Convolutions in the order in which the network is written: the shortcut's is the last of its block."""
    bottlenecks = len(_of_kinds(model, "Conv2D")) > 40
    repeats = {20: (2, 2, 2, 2), 36: (3, 4, 6, 3), 53: (3, 4, 6, 3), 104: (3, 4, 23, 3), 155: (3, 8, 36, 3)}
    convolutions, norms = _of_kinds(model, "Conv2D"), _of_kinds(model, "BatchNormalization")
    modules = [("conv1", "bn1")]
    for stage, repeat in enumerate(repeats[len(convolutions)], 1):
        for block in range(repeat):
            base = f"layer{stage}.{block}"
            modules += [(f"{base}.conv{i}", f"{base}.bn{i}") for i in range(1, 4 if bottlenecks else 3)]
            if block == 0 and (bottlenecks or stage > 1):
                modules.append((f"{base}.downsample.0", f"{base}.downsample.1"))
    for name, norm, (convolution, normalization) in zip(convolutions, norms, modules, strict=True):
        yield name, convolution
        yield norm, normalization
    yield from ((dense, "fc") for dense in _of_kinds(model, "Dense"))


def _densenet(model: Any) -> Pairs:
    yield from (("conv1_conv", "features.conv0"), ("conv1_bn", "features.norm0"), ("bn", "features.norm5"))
    yield "predictions", "classifier"
    for layer in _layers(model):
        inner = re.fullmatch(r"conv(\d)_block(\d+)_([012])_(bn|conv)", layer.name)
        if inner:
            stage, block, number, kind = inner.groups()
            part = f"norm{int(number) + 1}" if kind == "bn" else f"conv{number}"
            yield layer.name, f"features.denseblock{int(stage) - 1}.denselayer{block}.{part}"
        between = re.fullmatch(r"pool(\d)_(bn|conv)", layer.name)
        if between:
            stage, kind = between.groups()
            yield layer.name, f"features.transition{int(stage) - 1}.{'norm' if kind == 'bn' else 'conv'}"


def _small_densenet(model: Any) -> Pairs:
    repeats = {120: (6, 12, 24, 16), 168: (6, 12, 32, 32), 200: (6, 12, 48, 32)}
    convolutions, norms = _of_kinds(model, "Conv2D"), _of_kinds(model, "BatchNormalization")
    order_c, order_n = ["conv0"], ["norm0"]
    for stage, repeat in enumerate(repeats[len(convolutions)], 1):
        for layer in range(1, repeat + 1):
            base = f"denseblock{stage}.denselayer{layer}"
            order_n += [f"{base}.norm1", f"{base}.norm2"]
            order_c += [f"{base}.conv1", f"{base}.conv2"]
        if stage < 4:
            order_n.append(f"transition{stage}.norm")
            order_c.append(f"transition{stage}.conv")
    order_n.append("norm5")
    yield from ((name, f"features.{module}") for name, module in zip(convolutions, order_c, strict=True))
    yield from ((name, f"features.{module}") for name, module in zip(norms, order_n, strict=True))
    yield from ((dense, "classifier") for dense in _of_kinds(model, "Dense"))


def _convnext(model: Any) -> Pairs:
    name = model.name
    yield from ((f"{name}_stem_conv", "features.0.0"), (f"{name}_stem_layernorm", "features.0.1"))
    yield f"{name}_head_dense", "classifier.2"
    last = {f"{name}_head_layernorm", *(each for each in _of_kinds(model, "LayerNormalization") if name not in each)}
    yield from ((norm, "classifier.0") for norm in last)
    for i in range(3):
        yield f"{name}_downsampling_layernorm_{i}", f"features.{2 * i + 2}.0"
        yield f"{name}_downsampling_conv_{i}", f"features.{2 * i + 2}.1"
    parts = {"depthwise_conv": "block.0", "layernorm": "block.2", "pointwise_conv_1": "block.3"}
    parts |= {"pointwise_conv_2": "block.5", "layer_scale": "layer_scale"}
    for layer in _layers(model):
        inner = re.fullmatch(rf"{name}_stage_(\d)_block_(\d+)_(\w+)", layer.name)
        if inner:
            stage, block, part = inner.groups()
            yield layer.name, f"features.{2 * int(stage) + 1}.{block}.{parts[part]}"


#: by the model's name: the table of the network that torchvision has, too
TABLES: Mapping[str, Callable[[Any], Pairs]] = {
    r"alexnet": _alexnet,
    r"convnext_(tiny|small|base|large)": _convnext,
    r"densenet(121|169|201)": _densenet,
    r"smalldensenet(121|169|201)": _small_densenet,
    r"resnet(18|34)|smallresnet(50|101|152)": _resnet,
    r"vgg(11|11bn|16|16bn|19|19bn)|smallvgg(16|19)": _vgg,
}
#: networks of one name that are different ones in torchvision
DIFFERENT = {
    **{
        f"resnet{depth}": f"torchvision's has its strides in the 3x3 convolutions, which SmallResNet{depth} has"
        for depth in (50, 101, 152)
    },
    **dict.fromkeys(
        ("mobilenetv2_1.00_224", "MobileNetV3Small", "MobileNetV3Large", "efficientnetb0", "inception_v3", "googlenet"),
        "torchvision's pads its images otherwise and is another function of them",
    ),
}
