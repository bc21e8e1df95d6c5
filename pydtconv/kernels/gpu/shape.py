"""Copies between strided views (cext/cuda/elementwise.cu), and to other types (cast.cu)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.gpu.arrays import NUMBERS, REALS, register, size_of
from pydtconv.kernels.registry import MissingKernelError
from pydtconv.kernels.registry import register as enter
from pydtconv.ops.shape import Cast, Concatenate, Slice, Transpose


@register(Transpose)
class TransposeKernel(Kernel[Transpose]):
    """A permuted view is copied."""

    def forward(self, p: Pass) -> Call:
        return p.launcher.copy(p.x[0].transpose(self.op.order(p.x[0].ndim)), p.y[0])

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return nothing
        back = tuple(int(axis) for axis in np.argsort(self.op.order(p.dy[0].ndim)))
        return p.launcher.copy(p.dy[0].transpose(back), p.dx[0], accumulate=p.adds(0))


@register(Concatenate)
class ConcatenateKernel(Kernel[Concatenate]):
    """Each input is copied to its part of the output."""

    def _parts(self, whole: Any, extents: Sequence[int]) -> list[Any]:
        before = (slice(None),) * (self.op.axis % whole.ndim)
        ends = np.cumsum(extents).tolist()
        return [whole[(*before, slice(end - n, end))] for end, n in zip(ends, extents, strict=True)]

    def forward(self, p: Pass) -> Call:
        parts = self._parts(p.y[0], [x.shape[self.op.axis] for x in p.x])
        return sequence([p.launcher.copy(x, part) for x, part in zip(p.x, parts, strict=True)])

    def backward(self, p: Pass) -> Call:
        shown = [x if dx is None else dx for x, dx in zip(p.x, p.dx, strict=True)]
        known = [0 if array is None else array.shape[self.op.axis] for array in shown]
        left = p.dy[0].shape[self.op.axis] - sum(known)
        extents = [left if array is None else n for array, n in zip(shown, known, strict=True)]
        parts = self._parts(p.dy[0], extents)
        return sequence(
            [
                p.launcher.copy(part, dx, accumulate=p.adds(i))
                for i, (dx, part) in enumerate(zip(p.dx, parts, strict=True))
                if dx is not None
            ]
        )


@register(Slice)
class SliceKernel(Kernel[Slice]):
    """A window is copied; backward clears what lies outside."""

    def forward(self, p: Pass) -> Call:
        return p.launcher.copy(p.x[0][self.op.bounds(p.x[0].shape)], p.y[0])

    def backward(self, p: Pass) -> Call:
        dx = p.dx[0]
        if dx is None:
            return nothing
        clear = nothing if p.adds(0) else p.launcher.fill(dx, 0.0)
        return sequence([clear, p.launcher.copy(p.dy[0], dx[self.op.bounds(dx.shape)], accumulate=p.adds(0))])


def _rows(array: Any) -> tuple[int, int, int]:
    """Rows, elements of each and the elements from one to the next; one row for a scalar."""
    return size_of(array) if array.ndim else (1, 1, 1)


def bind_cast(launcher: Any, x: Any, y: Any, accumulate: bool = False) -> Call:
    """y (+)= x in y's dtype; one of the two is float32 or float64, and where y is none of them nothing is added."""
    if y.size == 0:
        return nothing
    rows, channels, ldx = _rows(x)
    if y.dtype.name in REALS:
        name = "uint8" if x.dtype.name == "bool" else x.dtype.name
        arguments: tuple[Any, ...] = (rows, channels, x, ldx, accumulate, y, _rows(y)[2])
        return launcher.each(f"cast.from_{name}", y.dtype, y.size, *arguments)
    arguments = (rows, channels, x, ldx, y, _rows(y)[2])
    return launcher.each(f"cast.to_{y.dtype.name}", x.dtype, y.size, *arguments)


@enter(Cast, device="gpu", dtypes=tuple(NUMBERS))
class CastKernel(Kernel[Cast]):
    """From any numbers to float32 and float64, and from these to any."""

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        names = {x.dtype.name, y.dtype.name}
        if not names & set(REALS) or not names <= set(NUMBERS):
            raise MissingKernelError(
                f"operator Cast: expected float32 or float64 on one side for device {self.device}, got {x.dtype.name} "
                f"and {y.dtype.name}"
            )
        return bind_cast(p.launcher, x, y)

    def backward(self, p: Pass) -> Call:
        dx = p.dx[0]
        if dx is None:
            return nothing
        if dx.dtype.name not in REALS or self.op.dtype not in REALS:
            return p.launcher.fill(dx, 0.0)
        return bind_cast(p.launcher, p.dy[0], dx)
