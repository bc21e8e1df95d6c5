"""The scalars that training minimises: the weighted mean of losses, penalties of weights, and their sum."""

from __future__ import annotations

from dataclasses import dataclass

from pydtconv._ext import losses as kernels
from pydtconv.ops.base import Call, Op, Pass, Retained, Spec
from pydtconv.ops.rows import adds, check_float, fits, flat_of

_REDUCTIONS = {"sum": 0, "sum_over_batch_size": 1, "mean": 1, "mean_with_sample_weight": 2}


@dataclass(frozen=True)
class WeightedMean(Op):
    """(values[, weights]) -> scalar: sum(values * weights) / divisor.

    reduction: "sum_over_batch_size" or "mean" (divisor: number of values), "sum" (1), or "mean_with_sample_weight"
    (sum of the weights, as they came; a sum of 0 gives 0).  weights may have fewer dimensions than values: those of its
    front, each weight counting for all values behind it.
    """

    reduction: str = "sum_over_batch_size"

    nondifferentiable = (1,)
    accumulates = (0,)
    dense = True

    def __post_init__(self) -> None:
        if self.reduction not in _REDUCTIONS:
            raise ValueError(f"WeightedMean: expected a reduction of {', '.join(_REDUCTIONS)}, got {self.reduction!r}")

    def infer(self, *inputs: Spec) -> Spec:
        values = inputs[0]
        check_float("WeightedMean", "values", values.dtype)
        if len(inputs) > 1:
            shape = _front(inputs[1].shape)
            if inputs[1].dtype != values.dtype or not fits(shape, values.shape[: len(shape)]):
                raise ValueError(
                    f"WeightedMean: weights must have dtype {values.dtype} and the first dimensions of values: "
                    f"{values.shape}, got {inputs[1].dtype} and {inputs[1].shape}"
                )
        return Spec((), values.dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(1,) if len(needs) > 1 else ())

    def forward(self, p: Pass) -> Call:
        values, result = flat_of(p.x[0]), flat_of(p.y[0])
        weights = flat_of(p.x[1]) if len(p.x) > 1 else None
        inner = 1 if weights is None else values.size // weights.size
        code = _REDUCTIONS[self.reduction]

        def run() -> None:
            kernels.weighted_mean_forward(inner, code, values, weights, result)

        return run

    def backward(self, p: Pass) -> Call:
        dresult, dvalues, accumulate = flat_of(p.dy[0]), flat_of(p.dx[0]), adds(p.accumulate, 0)
        weights = flat_of(p.x[1]) if len(p.x) > 1 else None
        inner = 1 if weights is None else dvalues.size // weights.size
        code = _REDUCTIONS[self.reduction]

        def run() -> None:
            kernels.weighted_mean_backward(inner, code, dresult, weights, accumulate, dvalues)

        return run


def _front(shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """The shape without the ones at its end."""
    while shape and shape[-1] == 1:
        shape = shape[:-1]
    return shape


@dataclass(frozen=True)
class L1L2Penalty(Op):
    """w -> scalar l1 * sum(|w|) + l2 * sum(w^2); dw = (l1 * sign(w) + 2 * l2 * w) * dy."""

    l1: float = 0.0
    l2: float = 0.0

    accumulates = (0,)
    dense = True

    def infer(self, *inputs: Spec) -> Spec:
        check_float("L1L2Penalty", "w", inputs[0].dtype)
        return Spec((), inputs[0].dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(0,))

    def forward(self, p: Pass) -> Call:
        w, result = flat_of(p.x[0]), flat_of(p.y[0])

        def run() -> None:
            kernels.l1_l2_forward(self.l1, self.l2, w, result)

        return run

    def backward(self, p: Pass) -> Call:
        w, dresult, dw, accumulate = flat_of(p.x[0]), flat_of(p.dy[0]), flat_of(p.dx[0]), adds(p.accumulate, 0)

        def run() -> None:
            kernels.l1_l2_backward(self.l1, self.l2, w, dresult, accumulate, dw)

        return run


@dataclass(frozen=True)
class Portion(Op):
    """Scalar -> scalar times this process's portion of the global batch, `RunState.portions[kind]`.

    The mean over the samples of one process becomes its part of the mean over all of them: the parts of all processes
    sum up to the loss of the global batch, and so do their gradients.
    """

    kind: str = "samples"

    accumulates = (0,)

    def infer(self, *inputs: Spec) -> Spec:
        if inputs[0].shape != ():
            raise ValueError(f"Portion: expected a scalar, got shape {inputs[0].shape}")
        return inputs[0]

    def forward(self, p: Pass) -> Call:
        x, y, run = p.x[0], p.y[0], p.run

        def scale() -> None:
            y[...] = run.portions.get(self.kind, 1.0) * float(x)

        return scale

    def backward(self, p: Pass) -> Call:
        dy, dx, run, accumulate = p.dy[0], p.dx[0], p.run, adds(p.accumulate, 0)

        def scale() -> None:
            dx[...] = run.portions.get(self.kind, 1.0) * float(dy) + (float(dx) if accumulate else 0.0)

        return scale


@dataclass(frozen=True)
class WeightedSum(Op):
    """Scalars -> sum of weights[i] * scalar i: the total of losses and penalties.  An empty `weights` means all 1."""

    weights: tuple[float, ...] = ()

    @property
    def accumulates(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(range(64))

    def infer(self, *inputs: Spec) -> Spec:
        if self.weights and len(self.weights) != len(inputs):
            raise ValueError(
                f"WeightedSum: expected {len(self.weights)} scalars, one for each weight, got {len(inputs)}"
            )
        for spec in inputs:
            if spec.shape != () or spec.dtype != inputs[0].dtype:
                raise ValueError(
                    f"WeightedSum: expected scalars of dtype {inputs[0].dtype}, got {spec.shape} {spec.dtype}"
                )
        return inputs[0]

    def forward(self, p: Pass) -> Call:
        terms = list(zip(self.weights or (1.0,) * len(p.x), p.x, strict=True))
        total = p.y[0]

        def run() -> None:
            total[...] = sum(weight * float(x) for weight, x in terms)

        return run

    def backward(self, p: Pass) -> Call:
        weights = self.weights or (1.0,) * len(p.dx)
        targets = [
            (w, dx, adds(p.accumulate, i))
            for i, (w, dx) in enumerate(zip(weights, p.dx, strict=True))
            if dx is not None
        ]
        dy = p.dy[0]

        def run() -> None:
            for weight, dx, accumulate in targets:
                dx[...] = weight * float(dy) + (float(dx) if accumulate else 0.0)

        return run
