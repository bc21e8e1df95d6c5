"""Matrices along the axes of images and other arrays, of which only a band is not 0 (cext/cuda/bands.cu)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pydtconv import dtypes
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.gpu.arrays import PACK, aligned, part, pixel_stride, register
from pydtconv.ops.base import Spec
from pydtconv.ops.separable import Band, Separable, band_of


class Step(NamedTuple):
    """A band along an axis, and the shape of what it makes."""

    axis: int
    band: Band
    shape: tuple[int, ...]


def _strides(x: Any, axis: int) -> tuple[int, int, int]:
    """Elements between neighbours in front of an axis, along it, and behind it, where pixels lie at equal distances."""
    ld = pixel_stride(x)
    if axis == x.ndim - 1:
        return ld, 1, 0
    pixels = math.prod(x.shape[axis + 1 : -1])
    return x.shape[axis] * pixels * ld, pixels * ld, ld


def bind_band(launcher: Any, band: Band, axis: int, x: Any, y: Any, accumulate: bool) -> Call:
    """y (+)= x multiplied by a band along an axis; both may be channel slices."""
    last = axis == x.ndim - 1
    outer, rows = math.prod(y.shape[:axis]), y.shape[axis]
    pixels, c = (1, 1) if last else (math.prod(y.shape[axis + 1 : -1]), y.shape[-1])
    steps = (*_strides(x, axis), *_strides(y, axis))
    packs = all(step * x.itemsize % PACK == 0 for step in (c, *steps))
    sizes = launcher.constant([outer, rows, pixels, c, *steps, band.weights.shape[1]], np.int64)
    given = [launcher.constant(each, np.int64) for each in (band.starts, band.counts)]
    arguments = (packs, sizes, launcher.constant(band.weights, x.dtype), *given, x, accumulate, y)
    return launcher.each("bands.multiply", y.dtype, y.size, *arguments)


def bands_bytes(steps: Sequence[Step], dtype: str) -> int:
    """Bytes of workspace of `bind_bands`: what lies between the steps, in turns."""
    between = [aligned(math.prod(step.shape) * dtypes.itemsize(dtype)) for step in steps[:-1]]
    return sum(max(between[i::2], default=0) for i in (0, 1))


def bind_bands(launcher: Any, steps: Sequence[Step], x: Any, y: Any, accumulate: bool, workspace: Any) -> Call:
    """y (+)= x multiplied by one band after the other."""
    if y.size == 0:
        return nothing
    if x.size == 0:
        return nothing if accumulate else launcher.fill(y, 0.0)
    calls, sizes = [], [aligned(math.prod(step.shape) * x.itemsize) for step in steps[:-1]]
    second = max(sizes[::2], default=0)
    for i, step in enumerate(steps[:-1]):
        between = part(workspace, second if i % 2 else 0, step.shape, x.dtype, x.itemsize)
        calls.append(bind_band(launcher, step.band, step.axis, x, between, False))
        x = between
    return sequence([*calls, bind_band(launcher, steps[-1].band, steps[-1].axis, x, y, accumulate)])


@register(Separable)
class SeparableKernel(Kernel[Separable]):
    """One axis after the other; between them arrays lie in the workspace."""

    def _steps(self, source: Sequence[Any], results: Sequence[Any], forward: bool) -> list[Step]:
        shape, found = list(source), []
        transposed = (self.op.extents is None) != forward
        for axis, given in zip(self.op.axes, self.op.filters, strict=True):
            band = band_of((results if transposed else shape)[axis], given, transposed)
            shape[axis] = results[axis]
            found.append(Step(axis, band, tuple(shape)))
        return found

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if None in inputs[0].shape:
            return 0
        x, y, forward = inputs[0].shape, self.op.infer(inputs[0]).shape, direction == "forward"
        return bands_bytes(self._steps(*((x, y) if forward else (y, x)), forward), inputs[0].dtype)

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        return bind_bands(p.launcher, self._steps(x.shape, y.shape, True), x, y, False, p.workspace)

    def backward(self, p: Pass) -> Call:
        dy, dx = p.dy[0], p.dx[0]
        if dx is None:
            return nothing
        return bind_bands(p.launcher, self._steps(dy.shape, dx.shape, False), dy, dx, p.adds(0), p.workspace)
