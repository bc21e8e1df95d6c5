"""PyTorch modules of networks that description.py has described: PyTorch's own layers, in place where that is usual."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.peers.torch_elements import Affine, Apply, ScaledSum, activation, elementwise
from benchmarks.peers.torch_tokens import module_of, on_vectors

Layer = dict[str, Any]
#: kinds that zeros around an image can become a part of, by the kind that adds them
PADDED = {"ZeroPadding2D": ("Conv2D", "DepthwiseConv2D"), "Pad": ("MaxPool",)}


class Network(nn.Module):
    """Runs the layers in order; a value is dropped after its last reader.  wiring: the parts' names and inputs."""

    def __init__(self, description: dict[str, Any]) -> None:
        super().__init__()
        layers = description["layers"]
        self.output = description["output"]
        readers: dict[str, list[Layer]] = {layer["name"]: [] for layer in layers}
        for layer in layers:
            for name in layer["inputs"]:
                readers[name].append(layer)
        by_name = {layer["name"]: layer for layer in layers}
        self.parts = nn.ModuleList()
        self.wiring: list[tuple[str, list[str]]] = []
        for layer in layers:
            if layer["kind"] == "InputLayer":
                self.input = layer["name"]
                continue
            if _zeros_of_reader(layer, readers):
                continue
            inputs, zeros = list(layer["inputs"]), None
            if (source := by_name[inputs[0]])["kind"] != "InputLayer" and _zeros_of_reader(source, readers):
                zeros, inputs = _zeros_of_reader(source, readers), source["inputs"]
            alone = len(readers[inputs[0]]) == 1 and by_name[inputs[0]]["kind"] != "InputLayer"
            self.parts.append(_module(layer, Place(alone, zeros)))
            self.wiring.append((layer["name"], inputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values = {self.input: x}
        left = Counter(name for _, inputs in self.wiring for name in inputs)
        for part, (name, inputs) in zip(self.parts, self.wiring, strict=True):
            arguments = [values[source] for source in inputs]
            for source in inputs:
                left[source] -= 1
                if not left[source]:
                    del values[source]
            values[name] = part(*arguments)
        return values[self.output]

    @torch.no_grad()
    def set_weights(self, weights: Mapping[str, Sequence[np.ndarray]]) -> None:
        """Arrays of `torch_weights.in_torch_order`.  Lazy modules need their shapes: the network has run once."""
        for part, (name, _) in zip(self.parts, self.wiring, strict=True):
            if name in weights:
                keys = [key for key in part.state_dict() if not key.endswith("num_batches_tracked")]
                values = weights[name]
                for key, value in zip(keys[len(keys) - len(values) :], values, strict=True):  # may have no scale
                    tensor = part.state_dict()[key]
                    tensor.copy_(torch.tensor(value.reshape(tuple(tensor.shape))))


class Place(NamedTuple):
    """Where a module stands.

    alone: nobody else reads its input, so that it may work in place.  zeros: rows and columns that it adds itself on
    both sides, because the layer before it, which it alone reads, does nothing else.
    """

    alone: bool
    zeros: tuple[int, int] | None


def _zeros_of_reader(layer: Layer, readers: dict[str, list[Layer]]) -> tuple[int, int] | None:
    """Rows and columns of zeros around an image, as many on either side, that its only reader can add, or None."""
    kinds = PADDED.get(layer["kind"])
    if kinds is None or len(readers[layer["name"]]) != 1:
        return None
    reader = readers[layer["name"]][0]
    if reader["kind"] not in kinds or reader["config"].get("padding", "valid") != "valid":
        return None
    config = layer["config"]
    (above, below), (left, right) = config["padding"] if "padding" in config else config["pad_width"][1:3]
    return (above, left) if above == below and left == right else None


def _module(layer: Layer, place: Place) -> nn.Module:
    """The module of a layer."""
    module = module_of(layer) or elementwise(layer, place.alone)
    if module is None and layer["kind"] in MODULES:
        module = MODULES[layer["kind"]](layer, place)
    if module is None:
        raise NotImplementedError(f"{layer['name']}: no PyTorch module for {layer['kind']}")
    return module


def _batch_normalization(layer: Layer, _: Place) -> nn.Module:
    """Scale and offset, of which PyTorch has both or none: one that the network is without stays as it is."""
    config, shape = layer["config"], layer["input_shape"]
    norm = {3: nn.BatchNorm1d, 5: nn.BatchNorm3d}.get(len(shape), nn.BatchNorm2d)
    module: nn.Module = norm(shape[-1], eps=config["epsilon"], momentum=1 - config["momentum"])
    for parameter, name in (module.weight, "scale"), (module.bias, "center"):
        parameter.requires_grad_(config[name])
    return module


def _dense(layer: Layer, _: Place) -> nn.Module:
    config = layer["config"]
    linear = nn.LazyLinear(config["units"], bias=config["use_bias"])
    return on_vectors(layer, _activated(linear, config["activation"]))


def _pooling(layer: Layer, _: Place) -> nn.Module:
    """Pooling as Keras has it: what is added around an image is no maximum and counts in no mean."""
    config, largest = layer["config"], layer["kind"] == "MaxPooling2D"
    window, strides = tuple(config["pool_size"]), tuple(config["strides"])
    sides = _same(layer, window, strides) if config["padding"] == "same" else [0, 0, 0, 0]
    above, below, left, right = sides
    if above == below and left == right:
        if largest:
            return nn.MaxPool2d(window, strides, (above, left))
        return nn.AvgPool2d(window, strides, (above, left), count_include_pad=False)
    around = [left, right, above, below]
    if largest and above == left == 0 and max(below, right) < min(strides):
        return nn.MaxPool2d(window, strides, ceil_mode=True)  # windows that begin inside
    if largest:
        return Apply(lambda x: F.max_pool2d(F.pad(x, around, value=-torch.inf), window, strides))

    def means(x: torch.Tensor) -> torch.Tensor:
        pixels = F.pad(torch.ones_like(x[:1, :1]), around)
        return F.avg_pool2d(F.pad(x, around), window, strides) / F.avg_pool2d(pixels, window, strides)

    return Apply(means)


def _largest(layer: Layer, place: Place) -> nn.Module:
    config = layer["config"]
    return nn.MaxPool2d(config["pool_size"], config["strides"], place.zeros or (0, 0))


def _global_average(layer: Layer, _: Place) -> nn.Module:
    kept = layer["config"]["keepdims"]
    return Apply(lambda x: x.mean(tuple(range(2, x.dim())), keepdim=kept))


def _zeros(layer: Layer, _: Place) -> nn.Module:
    (above, below), (left, right) = layer["config"]["padding"]
    return nn.ZeroPad2d((left, right, above, below))


def _cropping(layer: Layer, _: Place) -> nn.Module:
    (above, below), (left, right) = layer["config"]["cropping"]
    return Apply(lambda x: x[:, :, above : x.shape[2] - below, left : x.shape[3] - right])


def _pad(layer: Layer, _: Place) -> nn.Module:
    rows, columns, channels = layer["config"]["pad_width"][1:]
    sides = [*columns, *rows, *channels]
    return Apply(lambda x: F.pad(x, sides))


def _convolution(layer: Layer, place: Place) -> nn.Module:
    """A convolution, depthwise or not, or the two of a separable one."""
    config, kind = layer["config"], layer["kind"]
    channels = layer["input_shape"][-1]
    before: list[nn.Module] = []
    padding = place.zeros
    if padding is None:
        same = config["padding"] == "same"
        above, below, left, right = _same(layer, config["kernel_size"], config["strides"]) if same else [0, 0, 0, 0]
        padding = (above, left)
        if above != below or left != right:
            padding, before = (0, 0), [nn.ZeroPad2d((left, right, above, below))]
    each = channels * config.get("depth_multiplier", 1)
    conv: nn.Module = nn.Conv2d(
        channels,
        config["filters"] if kind == "Conv2D" else each,
        tuple(config["kernel_size"]),
        tuple(config["strides"]),
        padding,
        tuple(config["dilation_rate"]),
        config["groups"] if kind == "Conv2D" else channels,
        config["use_bias"] and kind != "SeparableConv2D",
    )
    if kind == "SeparableConv2D":
        conv = nn.Sequential(conv, nn.Conv2d(each, config["filters"], 1, bias=config["use_bias"]))
    conv = _activated(conv, config["activation"])
    return nn.Sequential(*before, conv) if before else conv


#: layers of one and of three axes, and transposed ones: PyTorch's module, and the number of axes
RANKS: dict[str, tuple[Any, int]] = {
    "Conv1D": (nn.Conv1d, 1),
    "Conv3D": (nn.Conv3d, 3),
    "Conv2DTranspose": (nn.ConvTranspose2d, 2),
    "Conv3DTranspose": (nn.ConvTranspose3d, 3),
    "MaxPooling3D": (nn.MaxPool3d, 3),
    "AveragePooling3D": (nn.AvgPool3d, 3),
}


def _of_rank(layer: Layer, _: Place) -> nn.Module:
    """A convolution, transposed convolution or pooling; paddings that differ by side are a step of their own."""
    config, same = layer["config"], layer["config"]["padding"] == "same"
    module, axes = RANKS[layer["kind"]]
    strides = tuple(config["strides"])
    if "pool_size" in config:
        if same:
            raise NotImplementedError(f"{layer['name']}: pooling with a padding")
        return module(tuple(config["pool_size"]), strides)  # type: ignore[no-any-return]
    kernel, channels = tuple(config["kernel_size"]), layer["input_shape"][-1]
    if layer["kind"].endswith("Transpose"):
        if same or kernel != strides:
            raise NotImplementedError(f"{layer['name']}: a transposed convolution whose windows overlap")
        conv = module(channels, config["filters"], kernel, strides, bias=config["use_bias"])
        return _activated(conv, config["activation"])
    sides, around = [0] * axes, [0] * (2 * axes)
    for axis, (extent, size, stride) in enumerate(zip(layer["input_shape"][1:-1], kernel, strides, strict=True)):
        total = max((-(-extent // stride) - 1) * stride + size - extent, 0) if same else 0
        sides[axis] = total // 2
        if total % 2:
            sides[axis] = 0
            around[2 * (axes - 1 - axis) : 2 * (axes - axis)] = [total // 2, total - total // 2]
    conv = module(channels, config["filters"], kernel, strides, sides, bias=config["use_bias"])
    before = [Apply(lambda x: F.pad(x, around))] if any(around) else []
    return nn.Sequential(*before, _activated(conv, config["activation"]))


def _activated(module: nn.Module, name: str) -> nn.Module:
    """The module and its activation; the loss wants what comes before a softmax."""
    return module if name in ("linear", "softmax") else nn.Sequential(module, activation(name, in_place=True))


def _same(layer: Layer, window: Any, strides: Any) -> list[int]:
    """Pixels above, below, left and right that "same" adds."""
    sides = []
    for extent, size, stride in zip(layer["input_shape"][1:3], window, strides, strict=True):
        total = max((-(-extent // stride) - 1) * stride + size - extent, 0)
        sides += [total // 2, total - total // 2]
    return sides


MODULES: dict[str, Callable[[Layer, Place], nn.Module]] = {
    "AveragePooling2D": _pooling,
    "BatchNormalization": _batch_normalization,
    "Conv2D": _convolution,
    "Cropping2D": _cropping,
    "CustomScaleLayer": lambda layer, _: ScaledSum(layer["config"]["scale"]),
    "Dense": _dense,
    "DepthwiseConv2D": _convolution,
    "GlobalAveragePooling1D": _global_average,
    "GlobalAveragePooling2D": _global_average,
    "MaxPool": _largest,
    "MaxPooling2D": _pooling,
    "Normalization": lambda layer, _: Affine.of_normalization(layer["config"], layer["input_shape"][-1]),
    "Pad": _pad,
    "Rescaling": lambda layer, _: Affine.of_rescaling(layer["config"]),
    "SeparableConv2D": _convolution,
    "ZeroPadding2D": _zeros,
    **dict.fromkeys(RANKS, _of_rank),
}
