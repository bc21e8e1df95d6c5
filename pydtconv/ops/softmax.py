"""Softmax and its logarithm along an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pydtconv._ext import losses as kernels
from pydtconv.ops.base import Call, Op, Pass, Retained, Spec
from pydtconv.ops.rows import adds, around, check_axis, check_float, flat_of, rows_of


@dataclass(frozen=True)
class Softmax(Op):
    """y = exp(x) / sum(exp(x)) along `axis`, computed from x - max(x).  dx = y * (dy - sum(dy * y))."""

    axis: int = -1

    inplace = (0,)
    inplace_backward = (0,)
    accumulates = (0,)

    _logarithm: ClassVar[bool] = False

    @property
    def dense(self) -> bool:  # type: ignore[override]
        return self.axis != -1

    def infer(self, *inputs: Spec) -> Spec:
        (x,) = inputs
        check_float(type(self).__name__, "x", x.dtype)
        check_axis(type(self).__name__, self.axis, len(x.shape))
        return x

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(y=(0,))

    def _matrix(self, array: np.ndarray) -> Any:
        """Rows along the last axis, or a single row that is the whole dense array."""
        return rows_of(array) if self.axis % array.ndim == array.ndim - 1 else flat_of(array).reshape(1, -1)

    def forward(self, p: Pass) -> Call:
        sizes = around(p.x[0].shape, self.axis)
        x, y = self._matrix(p.x[0]), self._matrix(p.y[0])

        def run() -> None:
            kernels.softmax_forward(*sizes, self._logarithm, x, y)

        return run

    def backward(self, p: Pass) -> Call:
        sizes = around(p.y[0].shape, self.axis)
        y, dy, dx = self._matrix(p.y[0]), self._matrix(p.dy[0]), self._matrix(p.dx[0])
        accumulate = adds(p.accumulate, 0)

        def run() -> None:
            kernels.softmax_backward(*sizes, self._logarithm, y, dy, accumulate, dx)

        return run


@dataclass(frozen=True)
class LogSoftmax(Softmax):
    """y = x - max(x) - log(sum(exp(x - max(x)))) along `axis`.  dx = dy - exp(y) * sum(dy)."""

    _logarithm: ClassVar[bool] = True
