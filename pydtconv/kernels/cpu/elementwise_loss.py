"""Losses that are a mean, or a sum, of a function of two elements (cext/nn/elementwise_loss.c)."""

from __future__ import annotations

import numpy as np

from pydtconv._ext import losses as ext
from pydtconv.kernels.base import Call, Kernel, Pass
from pydtconv.kernels.cpu.rows import around, flat_of
from pydtconv.kernels.registry import register
from pydtconv.ops.elementwise_loss import ElementwiseLoss

#: codes of `dtconv_loss`, by kind
CODES = {kind: code for code, kind in enumerate(ext.kinds())}
BINARY, BINARY_SCORES, SIGMOID = CODES["binary"], CODES["binary of scores"], CODES["sigmoid"]


@register(ElementwiseLoss)
class ElementwiseLossKernel(Kernel[ElementwiseLoss]):
    """One pass each way."""

    def forward(self, p: Pass) -> Call:
        sizes, x, loss = around(p.x[0].shape, self.op.axis), flat_of(p.x[0]), flat_of(p.y[0])
        return elementwise_forward(sizes, CODES[self.op.kind], self.op.parameter, 0.0, x, p.x[1], None, loss)

    def backward(self, p: Pass) -> Call:
        sizes, x, accumulate = around(p.x[0].shape, self.op.axis), flat_of(p.x[0]), p.adds(0)
        dloss, dx = flat_of(p.dy[0]), flat_of(p.dx[0])
        code = CODES[self.op.kind]
        return elementwise_backward(sizes, code, self.op.parameter, 0.0, x, p.x[1], dloss, None, accumulate, dx)


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
