"""PyTorch modules of layers that work element by element, or that only move elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Layer = dict[str, Any]


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *x: torch.Tensor) -> torch.Tensor:
        return self.function(*x)


class Affine(nn.Module):
    """x * scale + offset, numbers or one of each channel."""

    def __init__(self, scale: Any, offset: Any) -> None:
        super().__init__()
        for name, value in ("scale", scale), ("offset", offset):
            tensor = torch.tensor(value, dtype=torch.float32)
            self.register_buffer(name, tensor if tensor.dim() == 0 else tensor.reshape(-1, 1, 1))

    @classmethod
    def of_rescaling(cls, config: dict[str, Any]) -> Affine:
        """What Rescaling does."""
        return cls(config["scale"], config["offset"])

    @classmethod
    def of_normalization(cls, config: dict[str, Any], channels: int) -> Affine:
        """What Normalization does; one that has seen no data leaves all as it is."""
        mean, variance = config["mean"] or [0.0] * channels, config["variance"] or [1.0] * channels
        return cls([v**-0.5 for v in variance], [-m * v**-0.5 for m, v in zip(mean, variance, strict=True)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale + self.offset


class ScaledSum(nn.Module):
    """x + scale * y."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.add(x, y, alpha=self.scale)


class StochasticDepth(nn.Module):
    """In training, whole images become zero at this rate; the others grow as much."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training or self.rate == 0:
            return x
        kept = torch.rand(x.shape[0], *[1] * (x.dim() - 1), device=x.device) >= self.rate
        return x * (kept / (1 - self.rate)).to(x.dtype)


#: PyTorch's modules by Keras's names
_ACTIVATIONS = {
    "relu6": nn.ReLU6, "silu": nn.SiLU, "hard_silu": nn.Hardswish, "gelu": nn.GELU, "sigmoid": nn.Sigmoid,
}  # fmt: skip


def activation(name: str, in_place: bool) -> nn.Module:
    """The module of an activation.  in_place: it may overwrite what it reads, where that saves something.

    In place, PyTorch copies what it reads first where backward needs it: ReLU alone gains.
    """
    if name == "relu":
        return nn.ReLU(inplace=in_place)
    if name in _ACTIVATIONS:
        return _ACTIVATIONS[name]()
    raise NotImplementedError(f"activation {name}")


def elementwise(layer: Layer, alone: bool) -> nn.Module | None:
    """The module of a layer of this file; None for others.  alone: nobody else reads its input."""
    kind, config = layer["kind"], layer["config"]
    if kind == "Activation":
        name = config["activation"]  # the loss wants what comes before a softmax
        return nn.Identity() if name in ("linear", "softmax") else activation(name, alone)
    if kind == "ReLU":
        return activation("relu6" if config["max_value"] == 6 else "relu", alone)
    if kind == "LeakyReLU":
        return nn.LeakyReLU(config["negative_slope"], inplace=alone)
    if kind == "Dropout":
        rate, shape = config["rate"], config.get("noise_shape")
        return StochasticDepth(rate) if shape and shape[1:] == [1] * (len(shape) - 1) else nn.Dropout(rate)
    if kind in ("Add", "Multiply"):
        return _combined(kind, [value for value in layer["arguments"] if not isinstance(value, dict)])
    if kind == "Concatenate":
        return Apply(lambda *x: torch.cat(x, 1))
    if kind == "Flatten":
        return Apply(lambda x: x.flatten(1))
    if kind == "Reshape" and config.get("target_shape", [0])[:-1] == [1, 1]:
        return Apply(lambda x: x[:, :, None, None])
    if kind == "Reshape" and len(config.get("target_shape", [])) == 1:
        return Apply(lambda x: x.flatten(1))
    return None


def _combined(kind: str, numbers: list[float]) -> nn.Module:
    """The sum or the product of what is read and of numbers."""
    if numbers:
        (number,) = numbers
        return Apply((lambda x: x + number) if kind == "Add" else (lambda x: x * number))
    if kind == "Add":
        return Apply(lambda *x: sum(x[1:], start=x[0]))
    return Apply(lambda x, y: x * y)
