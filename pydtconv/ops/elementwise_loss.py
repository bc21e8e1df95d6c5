"""Losses that are a mean, or a sum, of a function of two elements: those of regression, hinge losses and their kin."""

from __future__ import annotations

from dataclasses import dataclass

from pydtconv.ops.base import Op, Retained, Spec
from pydtconv.ops.checks import check_axis, check_float, fits

KINDS = (
    "mse",
    "mae",
    "mape",
    "msle",
    "huber",
    "logcosh",
    "hinge",
    "squared_hinge",
    "poisson",
    "kl_divergence",
)


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

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"ElementwiseLoss: expected a kind of {', '.join(KINDS)}, got {self.kind!r}")

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
