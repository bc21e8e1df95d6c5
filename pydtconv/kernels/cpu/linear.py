"""The dense layer's products through the library's GEMM, finished block by block (cext/nn/dense.c).

A small dw = x^T dy of many rows is the gradient of a pointwise convolution's filters: its code reads both in order and
packs what it has read from cache (cext/conv/pointwise_weights.c).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from pydtconv import microkernels  # noqa: F401  (puts the choice of a kernel in place)
from pydtconv._ext import gemm as ext
from pydtconv._ext import ukr
from pydtconv.conv.activations import CODES
from pydtconv.conv.bound_passes import bind, run, scratch
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.products import strassen_levels
from pydtconv.conv.selection import workspace_bytes
from pydtconv.kernels.base import Call, Kernel, Pass, in_parts, nothing
from pydtconv.kernels.cpu.activation import bind_unary
from pydtconv.kernels.cpu.dense_bfloat16 import Bfloat16DenseKernel, wanted
from pydtconv.kernels.cpu.rows import rows_of
from pydtconv.kernels.registry import register
from pydtconv.ops.activation import parameters
from pydtconv.ops.base import Spec
from pydtconv.ops.linear import Dense

#: rows from which on dw is a pointwise convolution's, and its bytes at most: there that is the faster one
MANY_ROWS, SMALL_WEIGHTS = 8192, 1 << 20
POINTWISE = "backward_weights", "direct"


def bind_gemm(
    a: np.ndarray, b: np.ndarray, out: np.ndarray, workspace: np.ndarray | None, accumulate: bool = False
) -> Call:
    """out (+)= a @ b; a (m, k), b (k, n), out (m, n), any strides of a and b, contiguous rows of out."""
    if out.size == 0:
        return nothing
    if a.shape[1] == 0:
        return nothing if accumulate else partial(out.fill, 0)
    levels = levels_within(workspace, len(a), out.shape[1], a.shape[1], out.dtype.name)
    multiply = ext.bind_gemm(a, b, out, 1.0, 1.0 if accumulate else 0.0, workspace, None, levels)

    def run() -> None:
        status = multiply()
        if status:
            ukr.check(status, "gemm")

    return run


def gemm_bytes(m: int, n: int, k: int, dtype: str) -> int:
    """Of a product, by Strassen's algorithm where it takes that, and without."""
    if min(m, n, k) < 1:
        return 0
    levels = strassen_levels(m, n, k, dtype)
    return max(int(ext.workspace_bytes(m, n, k, dtype, None, each)) for each in {0, levels})


def levels_within(workspace: np.ndarray | None, m: int, n: int, k: int, dtype: str) -> int:
    """Levels of Strassen's algorithm of a product; 0 where the workspace is that of one without."""
    levels = strassen_levels(m, n, k, dtype)
    if not levels or workspace is None:
        return 0
    return levels if workspace.nbytes >= ext.workspace_bytes(m, n, k, dtype, None, levels) else 0


def bind_weights(
    x: np.ndarray, dy: np.ndarray, dw: np.ndarray, workspace: np.ndarray | None, accumulate: bool = False
) -> Call:
    """dw (+)= x^T dy; x (m, k) and dy (m, n) of contiguous rows, dw (k, n) dense; workspace: of `weights_bytes`."""
    (m, k), n = x.shape, dy.shape[1]
    p = _pointwise(m, k, n, x.dtype.name)
    if p is None or accumulate or x.strides[0] < k * x.itemsize:
        return bind_gemm(x.T, dy, dw, workspace, accumulate)
    arrays = x.reshape(p.x_shape), dw.reshape(p.w_shape), dy.reshape(p.y_shape)
    call, need = bind(p, *POINTWISE, *arrays), workspace_bytes(p, *POINTWISE)
    if workspace is not None and workspace.size >= need:
        return partial(run, call, workspace)
    return lambda: run(call, scratch(need))


def weights_bytes(m: int, k: int, n: int, dtype: str) -> int:
    p = _pointwise(m, k, n, dtype)
    return max(gemm_bytes(k, n, m, dtype), 0 if p is None else workspace_bytes(p, *POINTWISE))


def _pointwise(m: int, k: int, n: int, dtype: str) -> ConvProblem | None:
    if m < MANY_ROWS or not 0 < k * n * np.dtype(dtype).itemsize <= SMALL_WEIGHTS:
        return None
    return ConvProblem.of((1, 1, m, k), (1, 1, k, n), dtype=dtype)


@register(Dense)
class DenseKernel(Kernel[Dense]):
    """One product for each of y, dx and dw; bias, residual and activation while a block of y is in cache.

    Large ones take Strassen's algorithm where a pointwise convolution would (pydtconv/conv/products.py).  Where
    `config.set_float32_matmul_precision` allows products of bfloat16 and these are faster, they are taken.
    """

    def _by_halves(self, m: int, n: int, k: int, dtype: str) -> Bfloat16DenseKernel | None:
        products = wanted(m, n, k, dtype)
        if products is None:
            return None
        kernel = Bfloat16DenseKernel(self.op)
        kernel.products = products
        return kernel

    def _of(self, p: Pass) -> Bfloat16DenseKernel | None:
        y = p.dy[0] if p.dy else p.y[0]
        n = y.shape[-1]
        if p.x[0] is not None:  # dw may be some of its rows
            k = p.x[0].shape[-1]
        else:
            k = 0 if p.x[1] is None else p.x[1].shape[0]
        return self._by_halves(y.size // n, n, k, y.dtype.name) if n else None

    @property
    def _finish(self) -> tuple[int, np.ndarray]:
        """Code and parameters of the activation."""
        kind = self.op.activation or "linear"
        return CODES[kind], np.array(parameters(kind, self.op.alpha, None, None))

    def workspace(self, direction: str, *inputs: Spec) -> int:
        x, w = inputs[:2]
        if None in x.shape:
            return 0
        m, (k, n) = math.prod(x.shape[:-1]), w.shape  # type: ignore[arg-type]
        assert k is not None
        assert n is not None
        halves = self._by_halves(m, n, k, x.dtype)
        if halves is not None:
            return halves.workspace(direction, *inputs)
        if direction == "forward":
            return gemm_bytes(m, n, k, x.dtype)
        bias = ext.dense_bias_backward_workspace(m, n, x.dtype)
        return max(gemm_bytes(m, k, n, x.dtype), weights_bytes(m, k, n, x.dtype), bias)

    def forward(self, p: Pass) -> Call:
        halves = self._of(p)
        if halves is not None:
            return halves.forward(p)
        x, w, y = rows_of(p.x[0]), p.x[1], rows_of(p.y[0])
        bias, residual = self.op.bias_of(p.x), rows_of(p.x[-1]) if self.op.residual else None
        code, params = self._finish
        if y.size == 0:
            return nothing
        z = rows_of(p.saved["z"]) if "z" in p.saved else None
        levels = levels_within(p.workspace, len(x), y.shape[1], x.shape[1], y.dtype.name)
        call: Call = ext.bind_dense(x, w, bias, residual, code, params.astype(y.dtype), z, y, p.workspace, levels)
        return call

    def recompute(self, p: Pass) -> Call:
        if not self.op.smooth:
            return self.forward(p)
        assert self.op.activation is not None
        return bind_unary(self.op.activation, (0.0, 0.0, 0.0), p.saved["z"], p.y[0])

    def backward(self, p: Pass) -> Call:
        halves = self._of(p)
        if halves is not None:
            return halves.backward(p)
        dy = rows_of(p.dy[0])
        parts: dict[str, Call] = {}
        db = self.op.bias_of(p.dx)
        code, params = self._finish
        if db is not None and not dy.size and not p.adds(2):
            parts["backward_bias"] = partial(db.fill, 0)
        if dy.size and (self.op.activation or db is not None):
            v = rows_of(p.saved["z"] if self.op.smooth else p.y[0]) if self.op.activation else None
            add = db is not None and p.adds(2)
            finish = ext.bind_dense_bias_backward(code, params.astype(dy.dtype), v, dy, add, db, p.workspace)
            parts["backward_bias"] = finish
        if p.dx[0] is not None:
            parts["backward_data"] = bind_gemm(dy, p.x[1].T, rows_of(p.dx[0]), p.workspace, p.adds(0))
        if p.dx[1] is not None:
            parts["backward_weights"] = bind_weights(rows_of(p.x[0]), dy, p.dx[1], p.workspace, p.adds(1))
        return in_parts(parts, p.run)

    def backward_rows(self, p: Pass, rows: slice) -> Call:
        halves = self._of(p)
        if halves is not None:
            return halves.backward_rows(p, rows)
        dw = bind_weights(rows_of(p.x[0])[:, rows], rows_of(p.dy[0]), p.dx[1], p.workspace)
        return in_parts({"backward_weights": dw}, p.run)
