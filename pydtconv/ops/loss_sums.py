"""The scalars that training minimises: the weighted mean of losses, penalties of weights, and their sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.ops.base import Op, Reasons, Retained, Spec, functions
from pydtconv.ops.checks import check_float, fits
from pydtconv.ops.gradients import spread

__all__ = ["L1L2Penalty", "Portion", "WeightedMean", "WeightedSum"]

REDUCTIONS = ("sum", "sum_over_batch_size", "mean", "mean_with_sample_weight")


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
    mesh: ClassVar[str] = "weighted_mean"
    lacks: ClassVar[Reasons] = {"onnx": "exported networks have no losses"}

    def __post_init__(self) -> None:
        if self.reduction not in REDUCTIONS:
            raise ValueError(f"WeightedMean: expected a reduction of {', '.join(REDUCTIONS)}, got {self.reduction!r}")

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

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        shape = x[0].shape
        g = dy if self.reduction == "sum" else dy / float(math.prod(shape))
        g = spread(g, shape, tuple(range(len(shape))))
        if len(x) > 1:
            weights = functions.reshape(x[1], (*x[1].shape, *(1,) * (len(shape) - len(x[1].shape))))
            g = g * weights
            if self.reduction == "mean_with_sample_weight":
                g = functions.divide_no_nan(g * float(math.prod(shape)), functions.sum(x[1]))
        return [g, *[None] * (len(x) - 1)]


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
    mesh: ClassVar[str] = "penalty"
    lacks: ClassVar[Reasons] = {"onnx": "exported networks have no losses"}

    def formula(self, w: Any) -> Any:
        return self.l1 * functions.sum(functions.abs(w)) + self.l2 * functions.sum(functions.square(w))

    def infer(self, *inputs: Spec) -> Spec:
        check_float("L1L2Penalty", "w", inputs[0].dtype)
        return Spec((), inputs[0].dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(0,))


@dataclass(frozen=True)
class Portion(Op):
    """Scalar -> scalar times this process's portion of the global batch, `RunState.portions[kind]`.

    The mean over the samples of one process becomes its part of the mean over all of them: the parts of all processes
    sum up to the loss of the global batch, and so do their gradients.
    """

    kind: str = "samples"

    accumulates = (0,)
    mesh: ClassVar[str] = "scalars"
    lacks: ClassVar[Reasons] = {"onnx": "exported networks have no losses", "gpu": "ranks cut images on CPUs"}

    def infer(self, *inputs: Spec) -> Spec:
        if inputs[0].shape != ():
            raise ValueError(f"Portion: expected a scalar, got shape {inputs[0].shape}")
        return inputs[0]

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [self(dy)]


@dataclass(frozen=True)
class WeightedSum(Op):
    """Scalars -> sum of weights[i] * scalar i: the total of losses and penalties.  An empty `weights` means all 1."""

    weights: tuple[float, ...] = ()
    mesh: ClassVar[str] = "scalars"
    lacks: ClassVar[Reasons] = {"onnx": "exported networks have no losses"}

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

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [dy * float(weight) for weight in self.weights or (1.0,) * len(x)]
