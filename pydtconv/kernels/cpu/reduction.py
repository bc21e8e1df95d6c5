"""Sums, means and extrema over axes, in blocks (cext/nn/reduce.c)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.arithmetic import aligned, bind_binary, bind_binary_backward
from pydtconv.kernels.cpu.strided import bind_copy, bind_reduce, reduction_workspace
from pydtconv.kernels.registry import ANY, IMAGES, register
from pydtconv.ops.base import Spec
from pydtconv.ops.reduction import ArgMax, Max, Mean, Min, Reduction, Sum

ReductionType = TypeVar("ReductionType", bound=Reduction)


def with_axes(y: np.ndarray, axes: Sequence[int], rank: int) -> np.ndarray:
    """A view of y with the reduced axes put back as 1."""
    if y.ndim == rank:
        return y
    rest = iter(zip(y.shape, y.strides, strict=True))
    dims = [(1, y.itemsize) if d in axes else next(rest) for d in range(rank)]
    return as_strided(y, [n for n, _ in dims], [s for _, s in dims])


def factor_of(op: Reduction, shape: Sequence[int]) -> float:
    """Of a mean 1 / number of elements, else 1."""
    return 1 / max(1, math.prod(shape[d] for d in op.axes(len(shape)))) if isinstance(op, Mean) else 1.0


class ReductionKernel(Kernel[ReductionType]):
    """factor * reduction; backward spreads factor * dy."""

    #: name of the reduction among those of `strided.REDUCE`
    kind = "sum"

    def workspace(self, direction: str, *inputs: Spec) -> int:
        shape = inputs[0].shape
        return reduction_workspace(shape, self.op.axes(len(shape)), inputs[0].dtype) if direction == "forward" else 0

    def forward(self, p: Pass) -> Call:
        x = p.x[0]
        axes = self.op.axes(x.ndim)
        y = with_axes(p.y[0], axes, x.ndim)
        if not axes:
            return bind_copy(x, y)
        return bind_reduce(self.kind, axes, x, y, p.workspace, factor=factor_of(self.op, x.shape))

    def backward(self, p: Pass) -> Call:
        dx = p.dx[0]
        if dx is None:
            return nothing
        dy = with_axes(p.dy[0], self.op.axes(dx.ndim), dx.ndim)
        return bind_copy(dy, dx, factor_of(self.op, dx.shape), p.adds(0))


@register(Sum, Mean, dtypes=IMAGES)
class SumKernel(ReductionKernel[Reduction]):
    """Sums, and means by their factor."""


class ExtremumKernel(ReductionKernel[ReductionType]):
    """Backward finds again which elements are the extremum, and shares dy among them; the others get none of it."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        x = inputs[0]
        axes = self.op.axes(len(x.shape))
        reducing = reduction_workspace(x.shape, axes, x.dtype)
        if direction == "forward" or None in x.shape:
            return reducing
        return aligned(x.nbytes) + aligned(self.op.infer(x).nbytes) + reducing

    def backward(self, p: Pass) -> Call:
        """dx (+)= dy / count where x == y, count = sum of the mask x == y."""
        x, dx, ws = p.x[0], p.dx[0], p.workspace
        if dx is None or x.size == 0:
            return nothing
        assert ws is not None
        axes = self.op.axes(x.ndim)
        y, dy = (with_axes(a, axes, x.ndim) for a in (p.y[0], p.dy[0]))
        mask = ws[: x.nbytes].view(x.dtype).reshape(x.shape)
        rest = ws[aligned(x.nbytes) :]
        share = rest[: dy.nbytes].view(x.dtype).reshape(dy.shape)
        return sequence(
            [
                bind_binary("equal", x, y, mask),
                bind_reduce("sum", axes, mask, share, rest[aligned(dy.nbytes) :]) if axes else bind_copy(mask, share),
                bind_binary("divide", dy, share, share),
                bind_binary_backward("equal", 0, share, (x, y, None), dx, p.adds(0)),
            ]
        )


@register(Max)
class MaxKernel(ExtremumKernel[Max]):
    """The largest."""

    kind = "maximum"


@register(Min)
class MinKernel(ExtremumKernel[Min]):
    """The smallest."""

    kind = "minimum"


@register(ArgMax, dtypes=ANY)
class ArgMaxKernel(Kernel[ArgMax]):
    """NumPy's; any dtype has an order."""

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]

        def run() -> None:
            y[...] = np.argmax(x, axis=self.op.axis, keepdims=self.op.keepdims)

        return run

    def backward(self, p: Pass) -> Call:
        return nothing
