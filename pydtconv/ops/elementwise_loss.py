"""Losses that are a mean, or a sum, of a function of two elements: those of regression and hinge losses.

cext/cuda/elementwise_losses.h has the same table for kernels, with slopes by predictions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pydtconv.ops.base import Op, Reasons, Retained, Spec, functions
from pydtconv.ops.checks import check_axis, check_float, fits

__all__ = ["ElementwiseLoss"]


class Formula(NamedTuple):
    """A kind of loss.

    of(ops, p, t, a): the values for predictions and truths, in functions of `pydtconv.ops`, or of NumPy; a: epsilon, or
    delta.  of_arrays: NumPy's, where it has a better one.  summed: the loss is their sum, not their mean.  labelled:
    labels that are all 0 or 1 stand for -1 and 1.
    """

    of: Callable[..., Any]
    of_arrays: Callable[..., Any] | None = None
    summed: bool = False
    labelled: bool = False


def _huber(ops: Any, p: Any, t: Any, delta: float) -> Any:
    size = ops.abs(p - t)
    return ops.where(size <= delta, 0.5 * ops.square(size), delta * size - 0.5 * delta * delta)


def _hinge(ops: Any, p: Any, t: Any, a: float) -> Any:
    """Labels that are all 0 or 1 stand for -1 and 1."""
    only_labels = ops.all(ops.logical_or(ops.equal(t, 0.0), ops.equal(t, 1.0)))
    return _positive(ops, 1.0 - ops.where(only_labels, 2.0 * t - 1.0, t) * p)


def _positive(ops: Any, x: Any) -> Any:
    return np.maximum(x, 0) if isinstance(x, np.ndarray) else ops.relu(x)


def _kl_divergence(ops: Any, p: Any, t: Any, epsilon: float) -> Any:
    t, p = ops.clip(t, epsilon, 1.0), ops.clip(p, epsilon, 1.0)
    return t * ops.log(t / p)


# fmt: off
KINDS: dict[str, Formula] = {
    "mse": Formula(lambda o, p, t, a: o.square(p - t)),
    "mae": Formula(lambda o, p, t, a: o.abs(p - t)),
    "mape": Formula(lambda o, p, t, a: 100.0 * o.abs((p - t) / o.maximum(o.abs(t), a))),
    "msle": Formula(
        lambda o, p, t, a: o.square(o.log(o.maximum(p, a) + 1.0) - o.log(o.maximum(t, a) + 1.0)),
        lambda o, p, t, a: o.square(o.log1p(o.maximum(p, a)) - o.log1p(o.maximum(t, a))),
    ),
    "huber": Formula(_huber),
    "logcosh": Formula(
        lambda o, p, t, a: (p - t) + o.softplus(-2.0 * (p - t)) - math.log(2.0),
        lambda o, p, t, a: o.logaddexp(p - t, t - p) - o.log(p.dtype.type(2)),
    ),
    "hinge": Formula(_hinge, labelled=True),
    "squared_hinge": Formula(lambda o, p, t, a: o.square(_hinge(o, p, t, a)), labelled=True),
    "poisson": Formula(lambda o, p, t, a: p - t * o.log(p + a)),
    "kl_divergence": Formula(_kl_divergence, summed=True),
}
# fmt: on


def values_of(kind: str, ops: Any, p: Any, t: Any, a: float, axis: int = -1) -> Any:
    """The losses of a kind; ops: `pydtconv.ops` or NumPy."""
    row = KINDS[kind]
    found = (row.of_arrays if ops is np and row.of_arrays is not None else row.of)(ops, p, t, a)
    return ops.sum(found, axis=axis) if row.summed else ops.mean(found, axis=axis)


@dataclass(frozen=True)
class ElementwiseLoss(Op):
    """(y_pred, y_true) -> mean over `axis` of a function of two elements; e = y_pred - y_true, as Keras has them.

    "mse" e^2; "mae" |e|; "mape" 100 |e| / max(|y_true|, epsilon); "huber" e^2 / 2 up to |e| = delta, linear beyond;
    "msle" (log(y_pred + 1) - log(y_true + 1))^2 of values of at least epsilon; "logcosh" log(cosh(e));
    "hinge" max(1 - y_true * y_pred, 0), labels that are all 0 or 1 standing for -1 and 1; "squared_hinge" its square;
    "poisson" y_pred - y_true * log(y_pred + epsilon);
    "kl_divergence" (a sum, not a mean) y_true * log(y_true / y_pred) of values clipped to [epsilon, 1].
    """

    kind: str = "mse"
    delta: float = 1.0
    axis: int = -1
    epsilon: float = 1e-7

    nondifferentiable = (1,)
    accumulates = (0,)
    dense = True
    mesh: ClassVar[str] = "loss_values"
    lacks: ClassVar[Reasons] = {"onnx": "exported networks have no losses"}

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"ElementwiseLoss: expected a kind of {', '.join(KINDS)}, got {self.kind!r}")

    @property
    def parameter(self) -> float:
        """a of the formulas."""
        return self.delta if self.kind == "huber" else self.epsilon

    def formula(self, y_pred: Any, y_true: Any) -> Any:
        """With a gradient by y_true, too."""
        return values_of(self.kind, functions, y_pred, y_true, self.parameter, self.axis)

    def infer(self, *inputs: Spec) -> Spec:
        y_pred, y_true = inputs
        check_float("ElementwiseLoss", "y_pred", y_pred.dtype)
        if not fits(y_true.shape, y_pred.shape) or y_true.dtype != y_pred.dtype:
            raise ValueError(
                f"ElementwiseLoss: y_true must have y_pred's shape {y_pred.shape} and dtype {y_pred.dtype}, got "
                f"{y_true.shape} and {y_true.dtype}"
            )
        axis = check_axis("ElementwiseLoss", self.axis, len(y_pred.shape))
        return Spec(y_pred.shape[:axis] + y_pred.shape[axis + 1 :], y_pred.dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(0, 1))
