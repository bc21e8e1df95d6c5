"""The scalars that training minimises (cext/cuda/losses.cu)."""

from __future__ import annotations

from pydtconv.kernels.base import Call, Kernel, Pass, sequence
from pydtconv.kernels.gpu.arrays import register
from pydtconv.ops.loss_sums import L1L2Penalty, WeightedMean, WeightedSum

_REDUCTIONS = {"sum": 0, "sum_over_batch_size": 1, "mean": 1, "mean_with_sample_weight": 2}
THREADS = 256


@register(WeightedMean)
class WeightedMeanKernel(Kernel[WeightedMean]):
    """One block sums values and weights."""

    def forward(self, p: Pass) -> Call:
        values, weights = p.x[0], p.x[1] if len(p.x) > 1 else None
        inner = 1 if weights is None else values.size // weights.size
        arguments = (values.size, inner, _REDUCTIONS[self.op.reduction], values, weights, p.y[0])
        return p.launcher.launch("losses.weighted_mean_forward", values.dtype, (1,), THREADS, *arguments)

    def backward(self, p: Pass) -> Call:
        dvalues, weights = p.dx[0], p.x[1] if len(p.x) > 1 else None
        inner = 1 if weights is None else dvalues.size // weights.size
        blocks = min(-(-dvalues.size // THREADS), 256)
        arguments = (dvalues.size, inner, _REDUCTIONS[self.op.reduction], weights, p.dy[0], p.adds(0), dvalues)
        return p.launcher.launch("losses.weighted_mean_backward", dvalues.dtype, (blocks,), THREADS, *arguments)


@register(L1L2Penalty)
class L1L2PenaltyKernel(Kernel[L1L2Penalty]):
    """One block sums the weights."""

    def forward(self, p: Pass) -> Call:
        w = p.x[0]
        arguments = (w.size, float(self.op.l1), float(self.op.l2), w, p.y[0])
        return p.launcher.launch("losses.penalty_forward", w.dtype, (1,), THREADS, *arguments)

    def backward(self, p: Pass) -> Call:
        w, dw = p.x[0], p.dx[0]
        arguments = (w.size, float(self.op.l1), float(self.op.l2), w, p.dy[0], p.adds(0), dw)
        return p.launcher.each("losses.penalty_backward", w.dtype, w.size, *arguments)


@register(WeightedSum)
class WeightedSumKernel(Kernel[WeightedSum]):
    """A few scalars, one after the other."""

    def forward(self, p: Pass) -> Call:
        weights, total = self.op.weights or (1.0,) * len(p.x), p.y[0]
        return sequence(
            [
                p.launcher.launch("losses.add_scalar", total.dtype, (1,), 32, float(weight), i > 0, x, total)
                for i, (weight, x) in enumerate(zip(weights, p.x, strict=True))
            ]
        )

    def backward(self, p: Pass) -> Call:
        weights, dy = self.op.weights or (1.0,) * len(p.dx), p.dy[0]
        return sequence(
            [
                p.launcher.launch("losses.add_scalar", dy.dtype, (1,), 32, float(weight), p.adds(i), dy, dx)
                for i, (weight, dx) in enumerate(zip(weights, p.dx, strict=True))
                if dx is not None
            ]
        )
