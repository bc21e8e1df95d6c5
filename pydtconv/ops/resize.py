"""Operators that change the extents of images: crop, pad, upsample.

Padding and nearest upsampling are copies between strided views, bound once; bilinear upsampling goes through
cext/nn/resize.c.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pydtconv._ext import elem
from pydtconv.ops.base import Call, Op, Pass, Spec
from pydtconv.ops.shape import Slice, bind_fill, outside
from pydtconv.ops.strided import (
    adds,
    bind_copy,
    bind_reduce,
    kernel,
    nothing,
    reduction_workspace,
    same_float,
    sequence,
)


def Crop(cropping: Sequence[Sequence[int]]) -> Slice:
    """Images without `cropping` = ((top, bottom), (left, right)) rows and columns."""
    (top, bottom), (left, right) = cropping
    if min(top, bottom, left, right) < 0:
        raise ValueError(f"Crop: expected numbers of 0 or more, got {cropping}")
    return Slice((0, top, left, 0), (None, -bottom or None, -right or None, None))


@dataclass(frozen=True)
class Pad(Op):
    """x with `padding` = ((before, after), ...) elements per axis: a constant, or mirrored ("reflect", "symmetric")."""

    padding: tuple[tuple[int, int], ...]
    mode: str = "constant"
    value: float = 0.0

    accumulates: ClassVar[tuple[int, ...]] = (0,)

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

    def window(self, y: np.ndarray) -> tuple[slice, ...]:
        return tuple(slice(a, n - b) for n, (a, b) in zip(y.shape, self.padding, strict=True))

    def mirrored(self, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """(source, copy) of each mirrored line, axis by axis: the later axes copy what the earlier have filled."""
        pairs = []
        skip = 1 if self.mode == "reflect" else 0
        window = list(self.window(y))
        for axis, (before, after) in enumerate(self.padding):
            first, last = window[axis].start, window[axis].stop - 1
            lines = [(first + skip + i, first - 1 - i) for i in range(before)]
            lines += [(last - skip - i, last + 1 + i) for i in range(after)]
            rest = (*[slice(None)] * axis, slice(None), *window[axis + 1 :])
            for source, target in lines:
                place = [(*rest[:axis], slice(k, k + 1), *rest[axis + 1 :]) for k in (source, target)]
                pairs.append((y[place[0]], y[place[1]]))
        return pairs

    def forward(self, p: Pass) -> Call:
        y = p.y[0]
        window = self.window(y)
        inner = bind_copy(p.x[0], y[window])
        if self.mode == "constant":
            return sequence([*(bind_fill(part, self.value) for part in outside(y, window)), inner])
        return sequence([inner, *(bind_copy(source, copy) for source, copy in self.mirrored(y))])

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return nothing
        dy = p.dy[0]
        calls = (
            []
            if self.mode == "constant"
            else [bind_copy(copy, source, accumulate=True) for source, copy in reversed(self.mirrored(dy))]
        )
        return sequence([*calls, bind_copy(dy[self.window(dy)], p.dx[0], accumulate=adds(p, 0))])


@dataclass(frozen=True)
class Upsample(Op):
    """Images (n, h, w, c) with each pixel repeated size times, or interpolated between pixels ("bilinear")."""

    size: tuple[int, int] = (2, 2)
    interpolation: str = "nearest"

    accumulates: ClassVar[tuple[int, ...]] = (0,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", tuple(self.size))
        if self.interpolation not in ("nearest", "bilinear"):
            raise ValueError(f"Upsample: expected interpolation 'nearest' or 'bilinear', got {self.interpolation!r}")
        if len(self.size) != 2 or min(self.size) < 1:
            raise ValueError(f"Upsample: expected a size of two integers of 1 or more, got {self.size}")

    def infer(self, *inputs: Spec) -> Spec:
        same_float("Upsample", *inputs)
        if len(inputs[0].shape) != 4:
            raise ValueError(f"Upsample: expected images (n, h, w, c), got shape {inputs[0].shape}")
        n, h, w, c = inputs[0].shape
        return Spec((n, h and h * self.size[0], w and w * self.size[1], c), inputs[0].dtype)

    def _repeated(self, y: np.ndarray) -> np.ndarray:
        """y (or dy) as (n, h, size, w, size, c)."""
        (n, oh, ow, c), (fh, fw) = y.shape, self.size
        s = y.strides
        return as_strided(y, (n, oh // fh, fh, ow // fw, fw, c), (s[0], s[1] * fh, s[1], s[2] * fw, s[2], s[3]))

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if direction == "forward" or self.interpolation != "nearest" or None in inputs[0].shape:
            return 0
        n, h, w, c = inputs[0].shape
        return reduction_workspace((n, h, self.size[0], w, self.size[1], c), (2, 4), inputs[0].dtype)

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        if x.size == 0:
            return nothing
        if self.interpolation == "nearest":
            return bind_copy(x[:, :, None, :, None, :], self._repeated(y))
        return partial(kernel(elem.bilinear_forward, x.dtype), x, y, pixel_distance(x), pixel_distance(y))

    def backward(self, p: Pass) -> Call:
        dy, dx = p.dy[0], p.dx[0]
        if dx is None or dx.size == 0:
            return nothing
        if self.interpolation == "nearest":
            return bind_reduce(
                "sum", (2, 4), self._repeated(dy), dx[:, :, None, :, None, :], p.workspace, accumulate=adds(p, 0)
            )
        return partial(
            kernel(elem.bilinear_backward, dx.dtype), adds(p, 0), dy, dx, pixel_distance(dy), pixel_distance(dx)
        )


def pixel_distance(x: np.ndarray) -> int:
    """Elements between neighbouring pixels of images, which may be a channel slice."""
    n, h, w, c = x.shape
    for extent, stride, pixels in ((w, x.strides[2], 1), (h, x.strides[1], w), (n, x.strides[0], h * w)):
        if extent > 1:
            return stride // x.itemsize // pixels
    return c
