"""Operators that change the extents of images: crop, pad, upsample.

Padding and nearest upsampling are copies between strided views, bound once; bilinear upsampling goes through
cext/image/bands.c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pydtconv.ops.base import Op, Spec, functions
from pydtconv.ops.checks import same_float
from pydtconv.ops.shape import Slice

__all__ = ["Crop", "Pad", "Upsample"]


def Crop(cropping: Sequence[Sequence[int]]) -> Slice:
    """Images (n, *spatial, c) without `cropping` = (before, after) pixels along each axis."""
    if any(count < 0 for sides in cropping for count in sides):
        raise ValueError(f"Crop: expected numbers of 0 or more, got {cropping}")
    befores, afters = zip(*cropping, strict=True)
    return Slice((0, *befores, 0), (None, *(-after or None for after in afters), None))


@dataclass(frozen=True)
class Pad(Op):
    """x with `padding` = ((before, after), ...) elements per axis: a constant, or mirrored ("reflect", "symmetric")."""

    padding: tuple[tuple[int, int], ...]
    mode: str = "constant"
    value: float = 0.0

    accumulates: ClassVar[tuple[int, ...]] = (0,)
    extent_fields: ClassVar[tuple[str, ...]] = ("padding",)
    mesh: ClassVar[str] = "pad"

    def __post_init__(self) -> None:
        object.__setattr__(self, "padding", tuple((int(a), int(b)) for a, b in self.padding))
        object.__setattr__(self, "overwrites_dy", self.mode != "constant")
        if self.mode not in ("constant", "reflect", "symmetric"):
            raise ValueError(f"pad: expected mode 'constant', 'reflect' or 'symmetric', got {self.mode!r}")
        if any(n < 0 for pair in self.padding for n in pair):
            raise ValueError(f"pad: expected paddings of 0 or more, got {self.padding}")

    def infer(self, *inputs: Spec) -> Spec:
        same_float("pad", *inputs)
        shape = inputs[0].shape
        if len(self.padding) != len(shape):
            raise ValueError(f"pad: expected {len(shape)} pairs for shape {shape}, got {self.padding}")
        for n, pair in zip(shape, self.padding, strict=True):
            limit = math.inf if n is None or self.mode == "constant" else n - (self.mode == "reflect")
            if max(pair) > limit:
                raise ValueError(
                    f"pad: mode {self.mode!r} expects paddings of at most {limit} for shape {shape}, got {self.padding}"
                )
        return Spec(
            tuple(n if n is None else n + a + b for n, (a, b) in zip(shape, self.padding, strict=True)), inputs[0].dtype
        )

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Any:
        if self.mode != "constant":
            return NotImplemented
        sides = [(0, 0), *self.padding, (0, 0)] if len(self.padding) != len(dy.shape) else self.padding
        return [dy[tuple(slice(a, a + e) for (a, _), e in zip(sides, x[0].shape, strict=True))]]

    def formula(self, x: Any) -> Any:
        """Of the modes that mirror or repeat."""
        for axis, sides in enumerate(self.padding):
            if any(sides):
                x = functions.take(x, np.pad(np.arange(x.shape[axis]), sides, self.mode), axis=axis)  # type: ignore[call-overload]
        return x


@dataclass(frozen=True)
class Upsample(Op):
    """Images (n, *spatial, c) with each pixel repeated size times, or of two axes interpolated ("bilinear")."""

    size: tuple[int, ...] = (2, 2)
    interpolation: str = "nearest"

    accumulates: ClassVar[tuple[int, ...]] = (0,)
    extent_fields: ClassVar[tuple[str, ...]] = ("size",)
    mesh: ClassVar[str] = "upsample"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", tuple(self.size))
        if self.interpolation not in ("nearest", "bilinear"):
            raise ValueError(f"Upsample: expected interpolation 'nearest' or 'bilinear', got {self.interpolation!r}")
        if not 1 <= len(self.size) <= 3 or min(self.size) < 1:
            raise ValueError(f"Upsample: expected a size of one to three integers of 1 or more, got {self.size}")
        if len(self.size) != 2 and self.interpolation == "bilinear":
            raise ValueError(f"Upsample: bilinear interpolation expects a size of two integers, got {self.size}")

    def infer(self, *inputs: Spec) -> Spec:
        same_float("Upsample", *inputs)
        if len(inputs[0].shape) != len(self.size) + 2:
            axes = ", ".join("dhw"[-len(self.size) :])
            raise ValueError(f"Upsample: expected images (n, {axes}, c), got shape {inputs[0].shape}")
        n, *spatial, c = inputs[0].shape
        return Spec((n, *(e and e * times for e, times in zip(spatial, self.size, strict=True)), c), inputs[0].dtype)

    def formula(self, x: Any) -> Any:
        if self.interpolation == "bilinear":
            size = tuple(extent * times for extent, times in zip(x.shape[1:-1], self.size, strict=True))
            return functions.image.resize(x, size, "bilinear", data_format="channels_last")
        for axis, times in enumerate(self.size):
            x = functions.repeat(x, times, axis=axis + 1)
        return x
