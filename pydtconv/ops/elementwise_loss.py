"""Losses that are a mean, or a sum, of a function of two elements: those of regression, hinge losses and their kin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pydtconv._ext import losses as kernels
from pydtconv.ops.base import Call, Op, Pass, Retained, Spec
from pydtconv.ops.rows import adds, around, check_axis, check_float, fits, flat_of

#: codes of `dtconv_loss`
_CODES = {
    "mse": 0,
    "mae": 1,
    "mape": 2,
    "msle": 3,
    "huber": 4,
    "logcosh": 5,
    "hinge": 6,
    "squared_hinge": 7,
    "poisson": 8,
    "kl_divergence": 9,
}
BINARY, BINARY_SCORES, SIGMOID = 10, 11, 12


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
        if self.kind not in _CODES:
            raise ValueError(f"ElementwiseLoss: expected a kind of {', '.join(_CODES)}, got {self.kind!r}")

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

    @property
    def _parameter(self) -> float:
        return self.delta if self.kind == "huber" else self.epsilon

    def forward(self, p: Pass) -> Call:
        sizes, x, loss = around(p.x[0].shape, self.axis), flat_of(p.x[0]), flat_of(p.y[0])
        return elementwise_forward(sizes, _CODES[self.kind], self._parameter, 0.0, x, p.x[1], None, loss)

    def backward(self, p: Pass) -> Call:
        sizes, x, accumulate = around(p.x[0].shape, self.axis), flat_of(p.x[0]), adds(p.accumulate, 0)
        dloss, dx = flat_of(p.dy[0]), flat_of(p.dx[0])
        code = _CODES[self.kind]
        return elementwise_backward(sizes, code, self._parameter, 0.0, x, p.x[1], dloss, None, accumulate, dx)


def elementwise_forward(
    sizes: tuple[int, int, int],
    code: int,
    parameter: float,
    smoothing: float,
    x: np.ndarray,
    y_true: np.ndarray,
    q: np.ndarray | None,
    loss: np.ndarray,
) -> Call:
    t = flat_of(y_true)

    def run() -> None:
        kernels.elementwise_loss_forward(*sizes, code, parameter, smoothing, x, t, q, loss)

    return run


def elementwise_backward(
    sizes: tuple[int, int, int],
    code: int,
    parameter: float,
    smoothing: float,
    x: np.ndarray,
    y_true: np.ndarray,
    dloss: np.ndarray | None,
    dq: np.ndarray | None,
    accumulate: bool,
    dx: np.ndarray,
) -> Call:
    t = flat_of(y_true)

    def run() -> None:
        kernels.elementwise_loss_backward(*sizes, code, parameter, smoothing, x, t, dloss, dq, accumulate, dx)

    return run
