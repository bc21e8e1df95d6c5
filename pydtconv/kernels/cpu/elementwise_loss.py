"""Losses that are a mean, or a sum, of a function of two elements (cext/nn/elementwise_loss.c)."""

from __future__ import annotations

import numpy as np

from pydtconv._ext import losses as ext
from pydtconv.kernels.base import Call, Kernel, Pass
from pydtconv.kernels.cpu.rows import around, flat_of
from pydtconv.kernels.registry import register
from pydtconv.ops.elementwise_loss import ElementwiseLoss

#: codes of `dtconv_loss`
CODES = {
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


@register(ElementwiseLoss)
class ElementwiseLossKernel(Kernel[ElementwiseLoss]):
    """One pass each way."""

    @property
    def _parameter(self) -> float:
        return self.op.delta if self.op.kind == "huber" else self.op.epsilon

    def forward(self, p: Pass) -> Call:
        sizes, x, loss = around(p.x[0].shape, self.op.axis), flat_of(p.x[0]), flat_of(p.y[0])
        return elementwise_forward(sizes, CODES[self.op.kind], self._parameter, 0.0, x, p.x[1], None, loss)

    def backward(self, p: Pass) -> Call:
        sizes, x, accumulate = around(p.x[0].shape, self.op.axis), flat_of(p.x[0]), p.adds(0)
        dloss, dx = flat_of(p.dy[0]), flat_of(p.dx[0])
        code = CODES[self.op.kind]
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
        ext.elementwise_loss_forward(*sizes, code, parameter, smoothing, x, t, q, loss)

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
        ext.elementwise_loss_backward(*sizes, code, parameter, smoothing, x, t, dloss, dq, accumulate, dx)

    return run
