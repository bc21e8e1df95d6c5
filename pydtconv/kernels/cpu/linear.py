"""Matrix products through the library's GEMM."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from pydtconv import microkernels  # noqa: F401  (puts the choice of a kernel in place)
from pydtconv._ext import elem, ukr
from pydtconv._ext import gemm as gemm_ext
from pydtconv.kernels.base import Call, Kernel, Pass, in_parts, nothing, sequence
from pydtconv.kernels.cpu.activation import CODES, bind_unary, bind_unary_backward
from pydtconv.kernels.cpu.rows import rows_of
from pydtconv.kernels.cpu.strided import bind_reduce, flat, layout, reduction_workspace, typed
from pydtconv.kernels.registry import register
from pydtconv.ops.activation import parameters
from pydtconv.ops.base import Spec
from pydtconv.ops.linear import Dense, MatMul


def bind_gemm(
    a: np.ndarray, b: np.ndarray, out: np.ndarray, workspace: np.ndarray | None, accumulate: bool = False
) -> Call:
    """out (+)= a @ b; a (m, k), b (k, n), out (m, n), any strides of a and b, contiguous rows of out."""
    if out.size == 0:
        return nothing
    if a.shape[1] == 0:
        return nothing if accumulate else partial(out.fill, 0)
    multiply = typed(gemm_ext.gemm, a.dtype)
    scratch = np.empty(0, np.uint8) if workspace is None else workspace
    beta = 1.0 if accumulate else 0.0

    def run() -> None:
        ukr.check(multiply(a, b, out, 1.0, beta, scratch), "gemm")

    return run


def gemm_bytes(m: int, n: int, k: int, dtype: str) -> int:
    return int(gemm_ext.workspace_bytes(m, n, k, dtype)) if min(m, n, k) > 0 else 0


@register(Dense)
class DenseKernel(Kernel[Dense]):
    """One product for each of y, dx and dw; bias and activation in one sweep behind it."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        x, w = inputs[:2]
        if None in x.shape:
            return 0
        m, (k, n) = math.prod(x.shape[:-1]), w.shape  # type: ignore[arg-type]
        assert k is not None
        assert n is not None
        if direction == "forward":
            return gemm_bytes(m, n, k, x.dtype)
        return max(
            gemm_bytes(m, k, n, x.dtype), gemm_bytes(k, n, m, x.dtype), reduction_workspace((m, n), (0,), x.dtype)
        )

    def forward(self, p: Pass) -> Call:
        y = rows_of(p.y[0])
        calls = [bind_gemm(rows_of(p.x[0]), p.x[1], y, p.workspace)]
        params = parameters(self.op.activation or "linear", self.op.alpha, None, None)
        if y.size and len(p.x) > 2:
            b = p.x[2]
            calls.append(
                partial(
                    typed(elem.add_activation, y.dtype),
                    CODES[self.op.activation],
                    np.array(params, y.dtype),
                    layout(y.shape, y, b, y),
                    flat(y),
                    flat(b),
                    flat(y),
                )
            )
        elif y.size and self.op.activation:
            calls.append(bind_unary(self.op.activation, params, y, y))
        return sequence(calls)

    def backward(self, p: Pass) -> Call:
        dy = rows_of(p.dy[0])
        bias: list[Call] = []
        parts: dict[str, Call] = {}
        if self.op.activation and dy.size:
            params = parameters(self.op.activation, self.op.alpha, None, None)
            bias.append(bind_unary_backward(self.op.activation, params, rows_of(p.y[0]), dy, dy))
        if len(p.dx) > 2 and p.dx[2] is not None:
            bias.append(bind_reduce("sum", (0,), dy, p.dx[2].reshape(1, -1), p.workspace, accumulate=p.adds(2)))
        if bias:
            parts["backward_bias"] = sequence(bias)
        if p.dx[0] is not None:
            parts["backward_data"] = bind_gemm(dy, p.x[1].T, rows_of(p.dx[0]), p.workspace, p.adds(0))
        if p.dx[1] is not None:
            parts["backward_weights"] = bind_gemm(rows_of(p.x[0]).T, dy, p.dx[1], p.workspace, p.adds(1))
        return in_parts(parts, p.run)

    def backward_rows(self, p: Pass, rows: slice) -> Call:
        dw = bind_gemm(rows_of(p.x[0])[:, rows].T, rows_of(p.dy[0]), p.dx[1], p.workspace)
        return in_parts({"backward_weights": dw}, p.run)


@register(MatMul)
class MatMulKernel(Kernel[MatMul]):
    """A product for each matrix of the batch."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        (m, k), n = inputs[0].shape[-2:], inputs[1].shape[-1]
        if m is None or k is None or n is None:
            return 0
        if direction == "forward":
            return gemm_bytes(m, n, k, inputs[0].dtype)
        return max(gemm_bytes(m, k, n, inputs[0].dtype), gemm_bytes(k, n, m, inputs[0].dtype))

    def forward(self, p: Pass) -> Call:
        a, b = (_repeat(x, p.y[0].shape[:-2]) for x in p.x)
        return sequence([bind_gemm(a[i], b[i], p.y[0][i], p.workspace) for i in np.ndindex(p.y[0].shape[:-2])])

    def backward(self, p: Pass) -> Call:
        dy = p.dy[0]
        batch = dy.shape[:-2]
        calls: list[Call] = []
        for which in (0, 1):
            if p.dx[which] is None:
                continue
            dx, written = _repeat(p.dx[which], batch), set()
            other = _repeat(p.x[1 - which], batch)
            for i in np.ndindex(batch):
                place = dx[i].ctypes.data
                again = p.adds(which) or place in written
                written.add(place)
                left, right = (dy[i], other[i].T) if which == 0 else (other[i].T, dy[i])
                calls.append(bind_gemm(left, right, dx[i], p.workspace, again))
        return sequence(calls)


def _repeat(x: np.ndarray, batch: Sequence[int]) -> np.ndarray:
    """x with its leading axes repeated, as a view that may be written."""
    strides = [0] * (len(batch) + 2 - x.ndim) + [
        0 if n == 1 else s for n, s in zip(x.shape[:-2], x.strides[:-2], strict=True)
    ]
    return np.lib.stride_tricks.as_strided(x, (*batch, *x.shape[-2:]), (*strides, *x.strides[-2:]))
