"""Pad and upsample: copies between strided views; bilinear upsampling goes through cext/image/bands.c."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pydtconv._ext.image import Band
from pydtconv.dtypes import real
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.rows import real_of
from pydtconv.kernels.cpu.separable import bands_workspace, bind_bands, of_filter
from pydtconv.kernels.cpu.shape import bind_fill, outside
from pydtconv.kernels.cpu.strided import bind_copy, bind_reduce, reduction_workspace
from pydtconv.kernels.registry import IMAGES, register
from pydtconv.ops.base import Spec
from pydtconv.ops.resize import Pad, Upsample

Window = tuple[slice, ...]


def window_of(op: Pad, shape: Sequence[int]) -> Window:
    """Where x lies in a padded array of this shape."""
    return tuple(slice(a, n - b) for n, (a, b) in zip(shape, op.padding, strict=True))


def mirrored(op: Pad, shape: Sequence[int]) -> list[tuple[Window, Window]]:
    """(source, copy) of each mirrored line, axis by axis: the later axes copy what the earlier have filled."""
    pairs = []
    skip = 1 if op.mode == "reflect" else 0
    window = list(window_of(op, shape))
    for axis, (before, after) in enumerate(op.padding):
        first, last = window[axis].start, window[axis].stop - 1
        lines = [(first + skip + i, first - 1 - i) for i in range(before)]
        lines += [(last - skip - i, last + 1 + i) for i in range(after)]
        rest = (*[slice(None)] * axis, slice(None), *window[axis + 1 :])
        for source, target in lines:
            places = [(*rest[:axis], slice(k, k + 1), *rest[axis + 1 :]) for k in (source, target)]
            pairs.append((places[0], places[1]))
    return pairs


@register(Pad, dtypes=IMAGES)
class PadKernel(Kernel[Pad]):
    """Mirrored borders are copied line by line, and added back in the reverse order."""

    def forward(self, p: Pass) -> Call:
        y = p.y[0]
        window = window_of(self.op, y.shape)
        inner = bind_copy(p.x[0], y[window])
        if self.op.mode == "constant":
            return sequence([*(bind_fill(part, self.op.value) for part in outside(y, window)), inner])
        return sequence([inner, *(bind_copy(y[source], y[copy]) for source, copy in mirrored(self.op, y.shape))])

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return nothing
        dy = p.dy[0]
        lines = [] if self.op.mode == "constant" else reversed(mirrored(self.op, dy.shape))
        added = [bind_copy(dy[copy], dy[source], accumulate=True) for source, copy in lines]
        return sequence([*added, bind_copy(dy[window_of(self.op, dy.shape)], p.dx[0], accumulate=p.adds(0))])


@register(Upsample, dtypes=IMAGES)
class UpsampleKernel(Kernel[Upsample]):
    """Nearest: a copy to a view with repeated pixels, and a sum over it.  Bilinear: C."""

    def _repeated(self, y: np.ndarray) -> np.ndarray:
        """y (or dy) as (n, h, size, w, size, c)."""
        shape, strides = [y.shape[0]], [y.strides[0]]
        for extent, stride, times in zip(y.shape[1:-1], y.strides[1:-1], self.op.size, strict=True):
            shape += [extent // times, times]
            strides += [stride * times, stride]
        return as_strided(y, (*shape, y.shape[-1]), (*strides, y.strides[-1]))

    def _apart(self, x: np.ndarray) -> np.ndarray:
        """x (or dx) with an axis behind each one of its pixels, as (n, h, 1, w, 1, c)."""
        return x[(slice(None), *(slice(None), None) * len(self.op.size))]

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if None in inputs[0].shape:
            return 0
        n, *spatial, c = inputs[0].shape
        if self.op.interpolation == "bilinear":
            forward = direction == "forward"
            x = inputs[0] if forward else self.op.infer(*inputs)
            return bands_workspace(x, self._bands(spatial, forward, real(x.dtype))[1])
        if direction == "forward":
            return 0
        pairs = (extent for pair in zip(spatial, self.op.size, strict=True) for extent in pair)
        return reduction_workspace((n, *pairs, c), self._copies, inputs[0].dtype)

    def _bands(self, extents: Sequence[Any], forward: bool, dtype: str) -> tuple[Band, Band]:
        """The matrices of rows and columns, or their transposes; extents: of x."""
        pairs = zip(extents, self.op.size, strict=True)
        rows, columns = (of_filter(n, ("resize", n * times, "linear", False), not forward, dtype) for n, times in pairs)
        return rows, columns

    @property
    def _copies(self) -> tuple[int, ...]:
        """Axes of `_repeated` along which a pixel is repeated."""
        return tuple(range(2, 2 * len(self.op.size) + 1, 2))

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        if x.size == 0:
            return nothing
        if self.op.interpolation == "nearest":
            return bind_copy(self._apart(x), self._repeated(y))
        bands = self._bands(x.shape[1:3], True, real_of(x).name)
        return bind_bands(*bands, x, y, False, p.workspace)

    def backward(self, p: Pass) -> Call:
        dy, dx = p.dy[0], p.dx[0]
        if dx is None or dx.size == 0:
            return nothing
        if self.op.interpolation == "nearest":
            return bind_reduce(
                "sum", self._copies, self._repeated(dy), self._apart(dx), p.workspace, accumulate=p.adds(0)
            )
        bands = self._bands(dx.shape[1:3], False, real_of(dx).name)
        return bind_bands(*bands, dy, dx, p.adds(0), p.workspace)


def pixel_distance(x: np.ndarray) -> int:
    """Elements between neighbouring pixels of images, which may be a channel slice."""
    n, h, w, c = x.shape
    for extent, stride, pixels in ((w, x.strides[2], 1), (h, x.strides[1], w), (n, x.strides[0], h * w)):
        if extent > 1:
            return stride // x.itemsize // pixels
    return c
