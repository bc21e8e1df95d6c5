"""Dense layers by products of bfloat16: weights in float32 are rounded as they are packed, or split in two halves.

Images are bfloat16; or float32, where `config.set_float32_matmul_precision` allows that and it is faster (`wanted`).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from pydtconv import microkernels  # noqa: F401  (puts the choice of a kernel in place)
from pydtconv._ext import conv, gemm_mixed, ukr
from pydtconv.conv.activations import FUSED
from pydtconv.conv.matmul_precision import in_force
from pydtconv.dtypes import BFLOAT16, real
from pydtconv.kernels.base import Call, Kernel, Pass, in_parts, nothing, sequence
from pydtconv.kernels.cpu.activation import bind_unary, bind_unary_backward
from pydtconv.kernels.cpu.rows import rows_of
from pydtconv.kernels.cpu.strided import bind_copy
from pydtconv.kernels.registry import register
from pydtconv.ops.activation import parameters
from pydtconv.ops.base import Spec
from pydtconv.ops.linear import Dense

#: rows, columns and terms of a product from which on halves of float32 are multiplied faster than float32
FEWEST_ROWS = 128


def bind_product(
    a: np.ndarray,
    b: np.ndarray,
    out: np.ndarray,
    workspace: np.ndarray | None,
    accumulate: bool = False,
    bias: np.ndarray | None = None,
    activation: int = 0,
    slope: float = 0.0,
    products: int = 1,
) -> Call:
    """out (+)= act(a @ b + bias), each of a, b and out float32 or bfloat16; products: 1, or 3 of float32's halves."""
    if out.size == 0:
        return nothing
    space = np.empty(0, np.uint8) if workspace is None else workspace
    if a.shape[1] == 0:  # sums of nothing are those of one zero
        a, b = np.zeros((len(a), 1), a.dtype), np.zeros((1, b.shape[1]), b.dtype)
        space = np.empty(gemm_mixed.workspace_bytes(*out.shape, 1, products), np.uint8)

    def run() -> None:
        status = gemm_mixed.gemm(a, b, out, space, accumulate, bias, activation, slope, products=products)
        ukr.check(status, "gemm")

    return run


def wanted(m: int, n: int, k: int, dtype: str) -> int | None:
    """How many products of bfloat16 stand for one of float32 in a dense layer; None where float32's are faster.

    Both operands are packed, so that products of few rows gain nothing.
    """
    return in_force() if dtype == "float32" and min(m, n, k) >= FEWEST_ROWS else None


@register(Dense, dtypes=(BFLOAT16,))
class Bfloat16DenseKernel(Kernel[Dense]):
    """One product for each of y, dx and dw, with bias and activation in the first.

    products: that stand for each of float32's, where x is float32.
    """

    products = 1

    def workspace(self, direction: str, *inputs: Spec) -> int:
        x, w = inputs[:2]
        if None in x.shape or 0 in (*x.shape, *w.shape):
            return 0
        m, (k, n) = math.prod(x.shape[:-1]), w.shape  # type: ignore[arg-type]
        if direction == "forward":
            return self._product_bytes(m, n, k)
        sizes = (self._product_bytes(m, k, n), self._product_bytes(k, n, m))
        return max(*sizes, *(conv.bias_backward_workspace(n, dtype) for dtype in (BFLOAT16, real(BFLOAT16))))

    def _product_bytes(self, m: int | None, n: int | None, k: int | None) -> int:
        return int(gemm_mixed.workspace_bytes(m, n, k, self.products))

    def _product(self, a: Any, b: Any, out: Any, workspace: Any, accumulate: bool = False, **finish: Any) -> Call:
        return bind_product(a, b, out, workspace, accumulate, products=self.products, **finish)

    @property
    def _fused(self) -> tuple[int, float]:
        """Code and slope of the activation that the product applies; a smooth one follows it."""
        kind = None if self.op.smooth else self.op.activation
        return FUSED[kind], parameters(kind or "linear", self.op.alpha, None, None)[0]

    def forward(self, p: Pass) -> Call:
        code, slope = self._fused
        x, y = rows_of(p.x[0]), rows_of(p.y[0])
        z = rows_of(p.saved["z"]) if "z" in p.saved else y
        residual = self.op.residual
        calls = [bind_copy(p.x[-1], p.y[0])] if residual else []
        bias = self.op.bias_of(p.x)
        calls.append(self._product(x, p.x[1], z, p.workspace, residual, bias=bias, activation=code, slope=slope))
        if self.op.smooth and y.size:
            calls.append(bind_unary(str(self.op.activation), (0.0, 0.0, 0.0), z, y))
        return sequence(calls)

    def recompute(self, p: Pass) -> Call:
        if not self.op.smooth:
            return self.forward(p)
        return bind_unary(str(self.op.activation), (0.0, 0.0, 0.0), p.saved["z"], p.y[0])

    def backward(self, p: Pass) -> Call:
        dy = rows_of(p.dy[0])
        parts = {"backward_bias": self._finish(p, dy)}
        if p.dx[0] is not None:
            parts["backward_data"] = self._product(dy, p.x[1].T, rows_of(p.dx[0]), p.workspace, p.adds(0))
        if p.dx[1] is not None:
            parts["backward_weights"] = self._product(rows_of(p.x[0]).T, dy, p.dx[1], p.workspace, p.adds(1))
        return in_parts({name: call for name, call in parts.items() if call is not nothing}, p.run)

    def _finish(self, p: Pass, dy: np.ndarray) -> Call:
        """What multiplies dy by the activation's slope, in place, and writes db."""
        code, slope = self._fused
        wanted = self.op.bias_of(p.dx)
        calls = []
        if self.op.smooth and dy.size:
            z = rows_of(p.saved["z"])
            calls.append(bind_unary_backward(str(self.op.activation), (0.0, 0.0, 0.0), z, dy, dy))
        if dy.size == 0 and wanted is not None and not p.adds(2):
            calls.append(partial(wanted.fill, 0))
        if (code == 0 and wanted is None) or dy.size == 0:
            return sequence(calls)
        db = wanted if wanted is None or not p.adds(2) else np.empty(wanted.shape, wanted.dtype)
        slopes, results = dy[:, None, None], None if code == 0 else rows_of(p.y[0])[:, None, None]
        lddy, ldy = (0 if x is None else x.strides[0] // x.itemsize for x in (slopes, results))

        def finish() -> None:
            status = conv.bias_backward(slopes, lddy, results, ldy, code, slope, db, p.workspace)
            ukr.check(status, "gradient of the bias")

        calls.append(finish)
        if db is not wanted:
            calls.append(partial(np.add, wanted, db, out=wanted))
        return sequence(calls)

    def backward_rows(self, p: Pass, rows: slice) -> Call:
        dw = self._product(rows_of(p.x[0])[:, rows].T, rows_of(p.dy[0]), p.dx[1], p.workspace)
        return in_parts({"backward_weights": dw}, p.run)
