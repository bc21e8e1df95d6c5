"""Losses: cross-entropy over classes, its fusion with softmax, and the scalars that training minimises.

The values are Keras's.  Labels may be int32, int64, float32 or float64 (a float is cut to its integer); a label that is
no class raises ValueError when the loss runs, before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pydtconv._ext import norm
from pydtconv.ops.base import Call, Op, Pass, Retained, Spec
from pydtconv.ops.rows import adds, around, bytes_of, check_axis, check_float, flat_of

_SCORES, _PROBABILITIES, _SOFTMAX = 0, 1, 2
_LABEL_TYPES = {"int32": 0, "int64": 1, "float32": 2, "float64": 3}
_REDUCTIONS = {"sum": 0, "sum_over_batch_size": 1, "mean": 1, "mean_with_sample_weight": 2}


@dataclass(frozen=True)
class _Classes(Op):
    """What the cross-entropies over classes share: checks, and the targets that kernels read.

    kind: "categorical" (y_true like y_pred: distributions) or "sparse" (labels: y_true without the axis, or 1 there).
    label_smoothing: categorical distributions become t * (1 - s) + s / k.  ignore_class: a label whose samples
    have loss 0.
    """

    kind: str = "categorical"
    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1
    ignore_class: int | None = None
    epsilon: float = 1e-7

    nondifferentiable = (1,)
    accumulates = (0,)
    dense = True

    @property
    def _kind(self) -> str:
        return type(self).__name__

    def __post_init__(self) -> None:
        if self.kind not in ("categorical", "sparse"):
            raise ValueError(f"{self._kind}: expected kind 'categorical' or 'sparse', got {self.kind!r}")
        if not 0 <= self.label_smoothing <= 1:
            raise ValueError(f"{self._kind}: expected label_smoothing in [0, 1], got {self.label_smoothing}")
        if self.kind == "sparse" and self.label_smoothing:
            raise ValueError(f"{self._kind}: label_smoothing needs kind 'categorical', got {self.kind!r}")
        if self.kind == "categorical" and self.ignore_class is not None:
            raise ValueError(f"{self._kind}: ignore_class needs kind 'sparse', got {self.kind!r}")

    def _samples(self, y_pred: Spec, y_true: Spec) -> Spec:
        """Spec of the per-sample losses.  Raises ValueError where the inputs do not fit."""
        check_float(self._kind, "y_pred", y_pred.dtype)
        axis = check_axis(self._kind, self.axis, len(y_pred.shape))
        shape = y_pred.shape[:axis] + y_pred.shape[axis + 1 :]
        if self.kind == "sparse":
            one = (*shape[:axis], 1, *shape[axis:])
            if not (_fits(y_true.shape, shape) or _fits(y_true.shape, one)):
                raise ValueError(
                    f"{self._kind}: y_true must have shape {shape} or {one} (labels) because y_pred has shape "
                    f"{y_pred.shape}, got {y_true.shape}"
                )
            if y_true.dtype not in _LABEL_TYPES:
                raise ValueError(f"{self._kind}: y_true must be one of {', '.join(_LABEL_TYPES)}, got {y_true.dtype}")
        elif not _fits(y_true.shape, y_pred.shape) or y_true.dtype != y_pred.dtype:
            raise ValueError(
                f"{self._kind}: y_true must have y_pred's shape {y_pred.shape} and dtype {y_pred.dtype}, got "
                f"{y_true.shape} and {y_true.dtype}; labels need kind='sparse'"
            )
        return Spec(shape, y_pred.dtype)

    def _targets(self, y_true: np.ndarray) -> norm.Targets:
        sparse = self.kind == "sparse"
        label_type = _LABEL_TYPES[y_true.dtype.name] if sparse else 0
        return norm.Targets(y_true, bytes_of(y_true), sparse, label_type, self.label_smoothing, self.ignore_class)

    def _checked(self, call: Callable[[], None], y_true: np.ndarray, classes: int) -> Call:
        """The call, with an error for a wrong label that says what came."""

        def run() -> None:
            try:
                call()
            except norm.LabelError:
                ignored = "" if self.ignore_class is None else f" (or ignore_class {self.ignore_class})"
                raise ValueError(
                    f"{self._kind}: expected labels from 0 to {classes - 1}{ignored} in y_true, got values from "
                    f"{y_true.min()} to {y_true.max()}"
                ) from None

        return run


def _fits(shape: tuple[int | None, ...], wanted: tuple[int | None, ...]) -> bool:
    """Whether shapes are equal where both are known."""
    return len(shape) == len(wanted) and all(
        a == b or a is None or b is None for a, b in zip(shape, wanted, strict=True)
    )


@dataclass(frozen=True)
class CrossEntropy(_Classes):
    """Per-sample -sum(t * log(q)) over the classes on `axis`; (y_pred, y_true) -> losses, shaped without that axis.

    from_logits: q = softmax(y_pred); otherwise y_pred are probabilities, brought to sum 1 and clipped to
    [epsilon, 1 - epsilon], as Keras does.  Nothing is kept for backward but the two inputs.
    """

    def infer(self, *inputs: Spec) -> Spec:
        return self._samples(*inputs)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(0, 1))

    @property
    def _prediction(self) -> int:
        return _SCORES if self.from_logits else _PROBABILITIES

    def forward(self, p: Pass) -> Call:
        sizes, targets = around(p.x[0].shape, self.axis), self._targets(p.x[1])
        x, loss = flat_of(p.x[0]), flat_of(p.y[0])

        def run() -> None:
            norm.cross_entropy_forward(*sizes, self._prediction, self.epsilon, x, targets, None, loss)

        return self._checked(run, p.x[1], sizes[1])

    def backward(self, p: Pass) -> Call:
        sizes, targets = around(p.x[0].shape, self.axis), self._targets(p.x[1])
        x, dloss, dx, accumulate = flat_of(p.x[0]), flat_of(p.dy[0]), flat_of(p.dx[0]), adds(p.accumulate, 0)

        def run() -> None:
            norm.cross_entropy_backward(*sizes, self._prediction, self.epsilon, x, targets, dloss, None, accumulate, dx)

        return self._checked(run, p.x[1], sizes[1])


@dataclass(frozen=True)
class SoftmaxCrossEntropy(_Classes):
    """Softmax and cross-entropy in one: (logits, y_true) -> (probabilities, per-sample losses).

    Stands for Softmax -> CrossEntropy(from_logits=False), without the clipping that guards the logarithm: the loss
    comes from the logits and stays exact for probabilities near 0.  dx = (q * sum(t) - t) * dloss, plus what the
    probabilities' own gradient brings.
    """

    from_logits: bool = True

    def infer(self, *inputs: Spec) -> tuple[Spec, Spec]:
        return inputs[0], self._samples(*inputs)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(1,), y=(0,))

    def forward(self, p: Pass) -> Call:
        sizes, targets = around(p.x[0].shape, self.axis), self._targets(p.x[1])
        x, q, loss = flat_of(p.x[0]), flat_of(p.y[0]), flat_of(p.y[1])

        def run() -> None:
            norm.cross_entropy_forward(*sizes, _SOFTMAX, self.epsilon, x, targets, q, loss)

        return self._checked(run, p.x[1], sizes[1])

    def backward(self, p: Pass) -> Call:
        sizes, targets = around(p.y[0].shape, self.axis), self._targets(p.x[1])
        q, dq, dloss, dx = flat_of(p.y[0]), flat_of(p.dy[0]), flat_of(p.dy[1]), flat_of(p.dx[0])
        accumulate = adds(p.accumulate, 0)

        def run() -> None:
            norm.cross_entropy_backward(*sizes, _SOFTMAX, self.epsilon, q, targets, dloss, dq, accumulate, dx)

        return self._checked(run, p.x[1], sizes[1])


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
            if inputs[1].dtype != values.dtype or not _fits(shape, values.shape[: len(shape)]):
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
            norm.weighted_mean_forward(inner, code, values, weights, result)

        return run

    def backward(self, p: Pass) -> Call:
        dresult, dvalues, accumulate = flat_of(p.dy[0]), flat_of(p.dx[0]), adds(p.accumulate, 0)
        weights = flat_of(p.x[1]) if len(p.x) > 1 else None
        inner = 1 if weights is None else dvalues.size // weights.size
        code = _REDUCTIONS[self.reduction]

        def run() -> None:
            norm.weighted_mean_backward(inner, code, weights, dresult, accumulate, dvalues)

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
            norm.l1_l2_forward(self.l1, self.l2, w, result)

        return run

    def backward(self, p: Pass) -> Call:
        w, dresult, dw, accumulate = flat_of(p.x[0]), flat_of(p.dy[0]), flat_of(p.dx[0]), adds(p.accumulate, 0)

        def run() -> None:
            norm.l1_l2_backward(self.l1, self.l2, w, dresult, accumulate, dw)

        return run


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
