"""The scalars that training minimises (cext/nn/loss_sums.c)."""

from __future__ import annotations

from functools import partial

from pydtconv._ext import losses as ext
from pydtconv.kernels.base import Call, Kernel, Pass, nothing
from pydtconv.kernels.cpu.rows import flat_of
from pydtconv.kernels.registry import register
from pydtconv.ops.loss_sums import L1L2Penalty, Portion, WeightedMean, WeightedSum

_REDUCTIONS = {"sum": 0, "sum_over_batch_size": 1, "mean": 1, "mean_with_sample_weight": 2}


@register(WeightedMean)
class WeightedMeanKernel(Kernel[WeightedMean]):
    """One pass over values and weights; of nothing the mean is 0."""

    def forward(self, p: Pass) -> Call:
        if p.x[0].size == 0:
            return partial(p.y[0].fill, 0)
        values, result = flat_of(p.x[0]), flat_of(p.y[0])
        weights = flat_of(p.x[1]) if len(p.x) > 1 else None
        inner = 1 if weights is None else values.size // weights.size
        code = _REDUCTIONS[self.op.reduction]

        def run() -> None:
            ext.weighted_mean_forward(inner, code, values, weights, result)

        return run

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None or p.dx[0].size == 0:
            return nothing
        dresult, dvalues, accumulate = flat_of(p.dy[0]), flat_of(p.dx[0]), p.adds(0)
        weights = flat_of(p.x[1]) if len(p.x) > 1 else None
        inner = 1 if weights is None else dvalues.size // weights.size
        code = _REDUCTIONS[self.op.reduction]

        def run() -> None:
            ext.weighted_mean_backward(inner, code, dresult, weights, accumulate, dvalues)

        return run


@register(L1L2Penalty)
class L1L2PenaltyKernel(Kernel[L1L2Penalty]):
    """One pass over the weights."""

    def forward(self, p: Pass) -> Call:
        w, result = flat_of(p.x[0]), flat_of(p.y[0])

        def run() -> None:
            ext.l1_l2_forward(self.op.l1, self.op.l2, w, result)

        return run

    def backward(self, p: Pass) -> Call:
        w, dresult, dw, accumulate = flat_of(p.x[0]), flat_of(p.dy[0]), flat_of(p.dx[0]), p.adds(0)

        def run() -> None:
            ext.l1_l2_backward(self.op.l1, self.op.l2, w, dresult, accumulate, dw)

        return run


@register(Portion)
class PortionKernel(Kernel[Portion]):
    """The portion is asked for when it runs: it differs from step to step."""

    def forward(self, p: Pass) -> Call:
        x, y, run = p.x[0], p.y[0], p.run

        def scale() -> None:
            y[...] = run.portions.get(self.op.kind, 1.0) * float(x)

        return scale

    def backward(self, p: Pass) -> Call:
        dy, dx, run, accumulate = p.dy[0], p.dx[0], p.run, p.adds(0)

        def scale() -> None:
            dx[...] = run.portions.get(self.op.kind, 1.0) * float(dy) + (float(dx) if accumulate else 0.0)

        return scale


@register(WeightedSum)
class WeightedSumKernel(Kernel[WeightedSum]):
    """A few scalars, in Python."""

    def forward(self, p: Pass) -> Call:
        terms = list(zip(self.op.weights or (1.0,) * len(p.x), p.x, strict=True))
        total = p.y[0]

        def run() -> None:
            total[...] = sum(weight * float(x) for weight, x in terms)

        return run

    def backward(self, p: Pass) -> Call:
        weights = self.op.weights or (1.0,) * len(p.dx)
        targets = [(w, dx, p.adds(i)) for i, (w, dx) in enumerate(zip(weights, p.dx, strict=True)) if dx is not None]
        dy = p.dy[0]

        def run() -> None:
            for weight, dx, accumulate in targets:
                dx[...] = weight * float(dy) + (float(dx) if accumulate else 0.0)

        return run
