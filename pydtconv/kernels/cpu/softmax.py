"""Softmax and its logarithm along an axis (cext/nn/softmax.c)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv._ext import losses as ext
from pydtconv.kernels.base import Call, Kernel, Pass, nothing
from pydtconv.kernels.cpu.rows import around, flat_of, rows_of
from pydtconv.kernels.registry import register
from pydtconv.ops.softmax import LogSoftmax, Softmax


@register(Softmax, LogSoftmax)
class SoftmaxKernel(Kernel[Softmax]):
    """Rows along an axis behind which there is nothing, or (outer, k, inner) around another."""

    def _matrix(self, array: np.ndarray) -> Any:
        """Rows along the axis, or a single row that is the whole dense array."""
        if self.op.axis % array.ndim == array.ndim - 1:
            return rows_of(array)
        outer, k, inner = around(array.shape, self.op.axis)
        return flat_of(array).reshape((outer, k) if inner == 1 else (1, array.size))

    def forward(self, p: Pass) -> Call:
        if p.y[0].size == 0:
            return nothing
        sizes = around(p.x[0].shape, self.op.axis)
        x, y = self._matrix(p.x[0]), self._matrix(p.y[0])
        logarithm = isinstance(self.op, LogSoftmax)

        def run() -> None:
            ext.softmax_forward(*sizes, logarithm, x, y)

        return run

    def backward(self, p: Pass) -> Call:
        if p.y[0].size == 0:
            return nothing
        sizes = around(p.y[0].shape, self.op.axis)
        y, dy, dx = self._matrix(p.y[0]), self._matrix(p.dy[0]), self._matrix(p.dx[0])
        accumulate, logarithm = p.adds(0), isinstance(self.op, LogSoftmax)

        def run() -> None:
            ext.softmax_backward(*sizes, logarithm, y, dy, accumulate, dx)

        return run
