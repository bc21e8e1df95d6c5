"""Sums, means and extrema over axes (cext/cuda/reduction.cu)."""

from __future__ import annotations

from typing import Any

from pydtconv.kernels.base import Call, Kernel, Pass, nothing
from pydtconv.kernels.cpu.reduction import factor_of
from pydtconv.kernels.gpu.arithmetic import bind_sum_to, grouped
from pydtconv.kernels.gpu.arrays import register
from pydtconv.ops.reduction import Extremum, Max, Mean, Min, Reduction, Sum

THREADS = 256


def kept(op: Reduction, small: Any, shape: tuple[int, ...]) -> Any:
    """A view of what was reduced from this shape with the reduced axes as 1."""
    axes = op.axes(len(shape))
    return small.reshape(tuple(1 if d in axes else n for d, n in enumerate(shape)))


@register(Sum, Mean)
class SumKernel(Kernel[Reduction]):
    """factor * sum; backward spreads factor * dy."""

    def forward(self, p: Pass) -> Call:
        x = p.x[0]
        return bind_sum_to(p.launcher, x, kept(self.op, p.y[0], x.shape), factor_of(self.op, x.shape))

    def backward(self, p: Pass) -> Call:
        dx = p.dx[0]
        if dx is None:
            return nothing
        return p.launcher.copy(kept(self.op, p.dy[0], dx.shape), dx, factor_of(self.op, dx.shape), p.adds(0))


@register(Max, Min)
class ExtremumKernel(Kernel[Extremum]):
    """Backward finds again which elements are the extremum, and shares dy among them."""

    def forward(self, p: Pass) -> Call:
        x, y, launcher = p.x[0], p.y[0], p.launcher
        outputs, count, inputs, results = grouped(launcher, x, self.op.axes(x.ndim), y)
        sign = 1.0 if self.op.kind == "maximum" else -1.0
        arguments = (outputs, count, inputs, results, sign, x, y)
        return launcher.launch("reduction.extremum", x.dtype, (outputs,), THREADS, *arguments) if x.size else nothing

    def backward(self, p: Pass) -> Call:
        x, y, dy, dx, launcher = p.x[0], p.y[0], p.dy[0], p.dx[0], p.launcher
        if dx is None or x.size == 0:
            return nothing
        axes = self.op.axes(x.ndim)
        outputs, count, inputs, results = grouped(launcher, x, axes, y)
        _, _, gradients, slopes = grouped(launcher, dx, axes, dy)
        arguments = (outputs, count, inputs, results, slopes, gradients, p.adds(0), x, y, dy, dx)
        return launcher.launch("reduction.extremum_backward", x.dtype, (outputs,), THREADS, *arguments)
