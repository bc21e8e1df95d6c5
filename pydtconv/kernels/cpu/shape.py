"""Copies between strided views, bound once; permutations go through tiles (cext/nn/permute.c)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from pydtconv._ext import elem, wire
from pydtconv.dtypes import BFLOAT16, FLOATING, from_bits, to_bits
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.rows import matrices, real_of
from pydtconv.kernels.cpu.strided import bind_copy, flat, merge, strides_of
from pydtconv.kernels.registry import ANY, IMAGES, register
from pydtconv.ops.shape import Cast, Concatenate, Slice, Transpose

#: elements that are rounded to bfloat16 at a time
PIECE = 1 << 16


def bind_fill(y: np.ndarray, value: float) -> Call:
    """Sets all elements of a view to a value."""
    number = np.full((1,) * y.ndim, value, real_of(y))
    return bind_copy(to_bits(number) if y.dtype == np.uint16 else number, y) if y.size else nothing


def bind_permute(x: np.ndarray, y: np.ndarray, accumulate: bool = False) -> Call:
    """y (+)= x for a view x of y's shape whose innermost dimension need not be contiguous."""
    if x.size == 0:
        return nothing
    shape, (xs, ys) = merge(x.shape, [strides_of(x, x.shape), strides_of(y, x.shape)])
    if not shape or xs[-1] == 1 or ys[-1] != 1:
        return bind_copy(x, y, accumulate=accumulate)
    if len(shape) == 1:
        shape, xs, ys = [1, *shape], [0, *xs], [0, *ys]
    plan = np.array([len(shape), 2, *shape, *xs, *ys], np.int64)
    call: Call = elem.bind_permute(accumulate, plan, flat(x), flat(y))
    return call


@register(Transpose, dtypes=IMAGES)
class TransposeKernel(Kernel[Transpose]):
    """A permuted view is copied."""

    def forward(self, p: Pass) -> Call:
        return bind_permute(p.x[0].transpose(self.op.order(p.x[0].ndim)), p.y[0])

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return nothing
        return bind_permute(p.dy[0].transpose(np.argsort(self.op.order(p.dy[0].ndim))), p.dx[0], p.adds(0))


@register(Concatenate, dtypes=IMAGES)
class ConcatenateKernel(Kernel[Concatenate]):
    """Each input is copied to its part of the output."""

    def _extents(self, p: Pass) -> list[int]:
        """Extents of the inputs along the axis in backward; one that nothing shows is what the others leave."""
        shown = [x if dx is None else dx for x, dx in zip(p.x, p.dx, strict=True)]
        known = [None if array is None else array.shape[self.op.axis] for array in shown]
        if known.count(None) > 1:
            raise ValueError("concatenate: expected a gradient or the input for all inputs but one")
        left = p.dy[0].shape[self.op.axis] - sum(n for n in known if n is not None)
        return [left if n is None else n for n in known]

    def parts(self, whole: np.ndarray, extents: Sequence[int]) -> list[np.ndarray]:
        """The views of the output (or its gradient) that belong to inputs of these extents."""
        before = (slice(None),) * (self.op.axis % whole.ndim)
        ends = np.cumsum(extents).tolist()
        return [whole[(*before, slice(end - n, end))] for end, n in zip(ends, extents, strict=True)]

    def forward(self, p: Pass) -> Call:
        parts = self.parts(p.y[0], [x.shape[self.op.axis] for x in p.x])
        return sequence([bind_copy(x, part) for x, part in zip(p.x, parts, strict=True)])

    def backward(self, p: Pass) -> Call:
        parts = self.parts(p.dy[0], self._extents(p))
        return sequence(
            [
                bind_copy(part, dx, accumulate=p.adds(i))
                for i, (dx, part) in enumerate(zip(p.dx, parts, strict=True))
                if dx is not None
            ]
        )


@register(Slice, dtypes=IMAGES)
class SliceKernel(Kernel[Slice]):
    """A window is copied; backward clears what lies outside."""

    def forward(self, p: Pass) -> Call:
        return bind_copy(p.x[0][self.op.bounds(p.x[0].shape)], p.y[0])

    def backward(self, p: Pass) -> Call:
        dx = p.dx[0]
        if dx is None:
            return nothing
        window = self.op.bounds(dx.shape)
        calls = [] if p.adds(0) else [bind_fill(part, 0) for part in outside(dx, window)]
        return sequence([*calls, bind_copy(p.dy[0], dx[window], accumulate=p.adds(0))])


def outside(array: np.ndarray, window: Sequence[slice]) -> list[np.ndarray]:
    """Views that together are what of `array` does not lie in `window`, without overlap."""
    parts = []
    for axis, w in enumerate(window):
        before, after = (slice(None),) * axis, array
        start, stop, _ = w.indices(after.shape[axis])
        parts += [array[(*before, slice(0, start))], array[(*before, slice(stop, None))]]
        array = array[(*before, slice(start, stop))]
    return [part for part in parts if part.size]


@register(Cast, dtypes=ANY)
class CastKernel(Kernel[Cast]):
    """NumPy's conversion; that of numbers to bfloat16 is ours."""

    def forward(self, p: Pass) -> Call:
        if self.op.dtype == BFLOAT16:
            return (bind_narrow if p.x[0].dtype.kind == "f" else bind_round)(p.x[0], p.y[0])
        return partial(np.copyto, p.y[0], p.x[0], casting="unsafe")

    def backward(self, p: Pass) -> Call:
        dx = p.dx[0]
        if dx is None:
            return nothing
        if dx.dtype.name not in FLOATING or self.op.dtype not in FLOATING:
            return partial(dx.fill, 0)
        if self.op.dtype == BFLOAT16:
            return bind_widen(p.dy[0], dx)
        return partial(np.copyto, dx, p.dy[0], casting="unsafe")


@register(Cast, dtypes=(BFLOAT16,))
class FromBfloat16Kernel(Kernel[Cast]):
    """From bfloat16 to float32 or float64; to other dtypes by way of float32."""

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        if y.dtype.name in ("float32", "float64"):
            return bind_widen(x, y)

        def run() -> None:
            with np.errstate(all="ignore"):
                np.copyto(y, from_bits(x), casting="unsafe")

        return run

    def backward(self, p: Pass) -> Call:
        dx = p.dx[0]
        if dx is None:
            return nothing
        return bind_narrow(p.dy[0], dx) if self.op.dtype in FLOATING else partial(dx.fill, 0)


def bind_narrow(x: np.ndarray, y: np.ndarray) -> Call:
    """y = x rounded to bfloat16."""
    return partial(wire.narrow_rows, *matrices(x, y)) if x.size else nothing


def bind_round(x: np.ndarray, y: np.ndarray) -> Call:
    """y = integers rounded to bfloat16, to nearest even."""

    def run() -> None:
        source, target = x.reshape(-1), y.reshape(-1)
        for start in range(0, source.size, PIECE):
            target[start : start + PIECE] = to_bits(source[start : start + PIECE])

    return run if x.flags.c_contiguous and y.flags.c_contiguous else partial(_round_views, x, y)


def _round_views(x: np.ndarray, y: np.ndarray) -> None:
    y[...] = to_bits(x)


def bind_widen(x: np.ndarray, y: np.ndarray) -> Call:
    """y = x, which is bfloat16."""
    return partial(wire.widen_rows, *matrices(x, y)) if x.size else nothing
