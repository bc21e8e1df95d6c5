"""PyTorch modules of networks that description.py has described: PyTorch's own layers, in place where that is usual."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

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
            self.parts.append(_module(layer, self.readers[inputs[0]] == 1, padding))
            self.wiring.append((layer["name"], inputs))

    def _padded_by_reader(self, layer: Layer, layers: list[Layer]) -> bool:
        """Whether a padding becomes part of the convolution that alone reads it."""
        if layer["kind"] != "ZeroPadding2D" or self.readers[layer["name"]] != 1:
            return False
        (reader,) = [other for other in layers if layer["name"] in other["inputs"]]
        return reader["kind"] == "Conv2D"

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
    if kind in ("Conv2D", "DepthwiseConv2D"):
        return _convolution(layer, padding)
    if kind == "BatchNormalization":
        return nn.LazyBatchNorm2d(eps=config["epsilon"], momentum=1 - config["momentum"])
    if kind == "ReLU":
        return nn.ReLU6(inplace=alone) if config["max_value"] == 6 else nn.ReLU(inplace=alone)
    if kind == "Dense":
        return _activated(nn.LazyLinear(config["units"], bias=config["use_bias"]), config["activation"])
    if kind == "Dropout":
        return nn.Dropout(config["rate"])
    if kind in ("MaxPooling2D", "AveragePooling2D"):
        sides = _same(layer, config["pool_size"], config["strides"]) if config["padding"] == "same" else [0, 0, 0, 0]
        if not sides[0] == sides[1] == sides[2] == sides[3]:
            raise NotImplementedError(f"{layer['name']}: pooling with the padding {sides}")
        pool = nn.MaxPool2d if kind == "MaxPooling2D" else nn.AvgPool2d
        return pool(tuple(config["pool_size"]), tuple(config["strides"]), sides[0])
    if kind == "MaxPool":
        ((above, _), _) = config["padding"]
        return nn.MaxPool2d(tuple(config["pool_size"]), tuple(config["strides"]), above)
    if kind == "ZeroPadding2D":
        (above, below), (left, right) = config["padding"]
        return nn.ZeroPad2d((left, right, above, below))
    if kind == "Pad":
        rows, columns, channels = config["padding"][1:]
        sides = [*columns, *rows, *channels]
        return Apply(lambda x: F.pad(x, sides))
    functions = {
        "Add": lambda *x: sum(x[1:], start=x[0]),
        "Concatenate": lambda *x: torch.cat(x, 1),
        "GlobalAveragePooling2D": lambda x: x.mean((2, 3)),
        "Flatten": lambda x: x.flatten(1),
        "Activation": F.relu,
    }
    if kind not in functions or (kind == "Activation" and config["activation"] != "relu"):
        raise NotImplementedError(f"{layer['name']}: no PyTorch module for {kind}")
    return Apply(functions[kind])


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
