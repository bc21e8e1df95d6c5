"""PyTorch modules of networks that description.py has described: PyTorch's own layers, in place where that is usual."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.peers.torch_tokens import module_of, on_vectors

Layer = dict[str, Any]


class Network(nn.Module):
    """Runs the layers in order; a value is dropped after its last reader."""

    def __init__(self, description: dict[str, Any]) -> None:
        super().__init__()
        layers = description["layers"]
        self.output = description["output"]
        self.readers = Counter(name for layer in layers for name in layer["inputs"])
        by_name = {layer["name"]: layer for layer in layers}
        self.parts = nn.ModuleList()
        self.wiring: list[tuple[str, list[str]]] = []
        for layer in layers:
            if layer["kind"] == "InputLayer":
                self.input = layer["name"]
                continue
            if self._padded_by_reader(layer, layers):
                continue
            inputs, padding = list(layer["inputs"]), None
            source = by_name[inputs[0]]
            if layer["kind"] == "Conv2D" and source["kind"] == "ZeroPadding2D" and self.readers[source["name"]] == 1:
                padding, inputs = _symmetric(source["config"]["padding"]), source["inputs"]
            if layer["kind"] == "MaxPool" and source["kind"] == "Pad" and self.readers[source["name"]] == 1:
                padding, inputs = _symmetric(source["config"]["pad_width"][1:3]), source["inputs"]
            self.parts.append(_module(layer, self.readers[inputs[0]] == 1, padding))
            self.wiring.append((layer["name"], inputs))

    def _padded_by_reader(self, layer: Layer, layers: list[Layer]) -> bool:
        """Whether a padding becomes part of the convolution or pooling that alone reads it."""
        of = {"ZeroPadding2D": "Conv2D", "Pad": "MaxPool"}.get(layer["kind"])
        if of is None or self.readers[layer["name"]] != 1:
            return False
        (reader,) = [other for other in layers if layer["name"] in other["inputs"]]
        return bool(reader["kind"] == of)

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


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *x: torch.Tensor) -> torch.Tensor:
        return self.function(*x)  # type: ignore[no-any-return]


def _module(layer: Layer, alone: bool, padding: list[int] | None) -> nn.Module:
    """The module of a layer.  alone: nobody else reads its input, so that it may work in place."""
    kind, config = layer["kind"], layer["config"]
    of_tokens = module_of(layer, Apply)
    if of_tokens is not None:
        return of_tokens
    if kind in ("Conv2D", "DepthwiseConv2D"):
        return _convolution(layer, padding)
    if kind in RANKS:
        return _of_rank(layer, *RANKS[kind])
    if kind == "BatchNormalization":
        norm = {3: nn.LazyBatchNorm1d, 5: nn.LazyBatchNorm3d}.get(len(layer["input_shape"]), nn.LazyBatchNorm2d)
        return norm(eps=config["epsilon"], momentum=1 - config["momentum"])
    if kind == "LeakyReLU":
        return nn.LeakyReLU(config["negative_slope"], inplace=alone)
    if kind == "ReLU":
        return nn.ReLU6(inplace=alone) if config["max_value"] == 6 else nn.ReLU(inplace=alone)
    if kind == "Dense":
        linear = nn.LazyLinear(config["units"], bias=config["use_bias"])
        return on_vectors(layer, _activated(linear, config["activation"]))
    if kind == "Dropout":
        return nn.Dropout(config["rate"])
    if kind in ("MaxPooling2D", "AveragePooling2D"):
        sides = _same(layer, config["pool_size"], config["strides"]) if config["padding"] == "same" else [0, 0, 0, 0]
        if not sides[0] == sides[1] == sides[2] == sides[3]:
            raise NotImplementedError(f"{layer['name']}: pooling with the padding {sides}")
        pool = nn.MaxPool2d if kind == "MaxPooling2D" else nn.AvgPool2d
        return pool(tuple(config["pool_size"]), tuple(config["strides"]), sides[0])
    if kind == "MaxPool":
        return nn.MaxPool2d(tuple(config["pool_size"]), tuple(config["strides"]), tuple(padding or (0, 0)))
    if kind == "ZeroPadding2D":
        (above, below), (left, right) = config["padding"]
        return nn.ZeroPad2d((left, right, above, below))
    if kind == "Pad":
        rows, columns, channels = config["pad_width"][1:]
        sides = [*columns, *rows, *channels]
        return Apply(lambda x: F.pad(x, sides))
    functions = {
        "Add": lambda *x: sum(x[1:], start=x[0]),
        "Concatenate": lambda *x: torch.cat(x, 1),
        "GlobalAveragePooling1D": lambda x: x.mean(2),
        "GlobalAveragePooling2D": lambda x: x.mean((2, 3)),
        "Flatten": lambda x: x.flatten(1),
        "Activation": F.relu,
    }
    if kind not in functions or (kind == "Activation" and config["activation"] != "relu"):
        raise NotImplementedError(f"{layer['name']}: no PyTorch module for {kind}")
    return Apply(functions[kind])


#: layers of one and of three axes, and transposed ones: PyTorch's module, and the number of axes
RANKS: dict[str, tuple[Any, int]] = {
    "Conv1D": (nn.Conv1d, 1),
    "Conv3D": (nn.Conv3d, 3),
    "Conv2DTranspose": (nn.ConvTranspose2d, 2),
    "Conv3DTranspose": (nn.ConvTranspose3d, 3),
    "MaxPooling3D": (nn.MaxPool3d, 3),
    "AveragePooling3D": (nn.AvgPool3d, 3),
}


def _of_rank(layer: Layer, module: Any, axes: int) -> nn.Module:
    """A convolution, transposed convolution or pooling; paddings that differ by side are a step of their own."""
    config, same = layer["config"], layer["config"]["padding"] == "same"
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


def _convolution(layer: Layer, padding: list[int] | None) -> nn.Module:
    config = layer["config"]
    channels = layer["input_shape"][-1]
    depthwise = layer["kind"] == "DepthwiseConv2D"
    before: list[nn.Module] = []
    if padding is None:
        same = config["padding"] == "same"
        sides = _same(layer, config["kernel_size"], config["strides"]) if same else [0, 0, 0, 0]
        if sides[0] == sides[1] and sides[2] == sides[3]:
            padding = [sides[0], sides[2]]
        else:
            padding = [0, 0]
            before = [nn.ZeroPad2d((sides[2], sides[3], sides[0], sides[1]))]
    conv = nn.Conv2d(
        channels,
        channels * config["depth_multiplier"] if depthwise else config["filters"],
        tuple(config["kernel_size"]),
        tuple(config["strides"]),
        padding,  # type: ignore[arg-type]
        tuple(config["dilation_rate"]),
        channels if depthwise else config["groups"],
        config["use_bias"],
    )
    return nn.Sequential(*before, _activated(conv, config["activation"]))


def _activated(module: nn.Module, activation: str) -> nn.Module:
    """The module and its activation; the loss wants what comes before a softmax."""
    if activation in ("linear", "softmax"):
        return module
    if activation == "relu":
        return nn.Sequential(module, nn.ReLU(inplace=True))
    if activation == "gelu":
        return nn.Sequential(module, nn.GELU())
    raise NotImplementedError(f"activation {activation}")


def _same(layer: Layer, window: list[int], strides: list[int]) -> list[int]:
    """Pixels above, below, left and right that "same" adds."""
    sides = []
    for extent, size, stride in zip(layer["input_shape"][1:3], window, strides, strict=True):
        total = max((-(-extent // stride) - 1) * stride + size - extent, 0)
        sides += [total // 2, total - total // 2]
    return sides


def _symmetric(padding: list[list[int]]) -> list[int]:
    (above, below), (left, right) = padding
    if above != below or left != right:
        raise NotImplementedError(f"a padding of {padding}")
    return [above, left]
