"""Matrix products: the dense layer's and the general one, through the library's GEMM.

y = f(x w + b)          x (..., k), w (k, n), b (n,), y (..., n)
dx = dy w^T, dw = x^T dy, db = sum of dy's rows, with dy multiplied by f'(y) first
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from pydtconv import microkernels  # noqa: F401  (puts the choice of a kernel in place)
from pydtconv._ext import elem, ukr
from pydtconv._ext import gemm as gemm_ext
from pydtconv.ops.activation import activation_code, bind_unary, bind_unary_backward, parameters
from pydtconv.ops.base import Call, Cost, Op, Pass, Retained, Spec, in_parts
from pydtconv.ops.rows import rows_of
from pydtconv.ops.strided import (
    adds,
    bind_reduce,
    broadcast_shapes,
    flat,
    kernel,
    layout,
    nothing,
    reduction_workspace,
    same_float,
    sequence,
)


def bind_gemm(
    a: np.ndarray, b: np.ndarray, out: np.ndarray, workspace: np.ndarray | None, accumulate: bool = False
) -> Call:
    """out (+)= a @ b; a (m, k), b (k, n), out (m, n), any strides of a and b, contiguous rows of out."""
    if out.size == 0:
        return nothing
    if a.shape[1] == 0:
        return nothing if accumulate else partial(out.fill, 0)
    multiply = kernel(gemm_ext.gemm, a.dtype)
    scratch = np.empty(0, np.uint8) if workspace is None else workspace
    beta = 1.0 if accumulate else 0.0

    def run() -> None:
        ukr.check(multiply(a, b, out, 1.0, beta, scratch), "gemm")

    return run


def gemm_bytes(m: int, n: int, k: int, dtype: str) -> int:
    return int(gemm_ext.workspace_bytes(m, n, k, dtype == "float64")) if min(m, n, k) > 0 else 0


@dataclass(frozen=True)
class Dense(Op):
    """y = f(x w) or f(x w + b) over the last axis of x; f is a fused activation, alpha its parameter."""

    activation: str | None = None
    alpha: float | None = None

    accumulates: ClassVar[tuple[int, ...]] = (0, 1, 2)
    splits: ClassVar[int] = 1
    takes_bias: ClassVar[bool] = True

    def __post_init__(self) -> None:
        activation_code(self.activation)
        object.__setattr__(self, "overwrites_dy", self.activation is not None)

    def infer(self, *inputs: Spec) -> Spec:
        dtype = same_float("Dense", *inputs)
        x, w = inputs[:2]
        if len(w.shape) != 2:
            raise ValueError(f"Dense: expected w of two dimensions, got shape {w.shape}")
        if not x.shape or x.shape[-1] != w.shape[0]:
            raise ValueError(f"Dense: expected x of shape (..., {w.shape[0]}) for w of shape {w.shape}, got {x.shape}")
        if len(inputs) > 2 and inputs[2].shape != w.shape[1:]:
            raise ValueError(f"Dense: expected b of shape {w.shape[1:]}, got {inputs[2].shape}")
        return Spec((*x.shape[:-1], w.shape[1]), dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        x = (0,) if needs[1] else ()
        return Retained(x=(*x, 1) if needs[0] else x, y=(0,) if self.activation else ())

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

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        x, w = inputs[:2]
        products = x.size * (w.shape[1] or 0)
        parts = ("forward",) if direction == "forward" else ("backward_data", "backward_weights")
        return dict.fromkeys(parts, Cost(2 * products, products))

    def forward(self, p: Pass) -> Call:
        y = rows_of(p.y[0])
        calls = [bind_gemm(rows_of(p.x[0]), p.x[1], y, p.workspace)]
        params = parameters(self.activation or "linear", self.alpha, None, None)
        if y.size and len(p.x) > 2:
            b = p.x[2]
            calls.append(
                partial(
                    kernel(elem.add_activation, y.dtype),
                    activation_code(self.activation),
                    np.array(params, y.dtype),
                    layout(y.shape, y, b, y),
                    flat(y),
                    flat(b),
                    flat(y),
                )
            )
        elif y.size and self.activation:
            calls.append(bind_unary(self.activation, params, y, y))
        return sequence(calls)

    def backward(self, p: Pass) -> Call:
        dy = rows_of(p.dy[0])
        bias: list[Call] = []
        parts: dict[str, Call] = {}
        if self.activation and dy.size:
            params = parameters(self.activation, self.alpha, None, None)
            bias.append(bind_unary_backward(self.activation, params, rows_of(p.y[0]), dy, dy))
        if len(p.dx) > 2 and p.dx[2] is not None:
            bias.append(bind_reduce("sum", (0,), dy, p.dx[2].reshape(1, -1), p.workspace, accumulate=adds(p, 2)))
        if bias:
            parts["backward_bias"] = sequence(bias)
        if p.dx[0] is not None:
            parts["backward_data"] = bind_gemm(dy, p.x[1].T, rows_of(p.dx[0]), p.workspace, adds(p, 0))
        if p.dx[1] is not None:
            parts["backward_weights"] = bind_gemm(rows_of(p.x[0]).T, dy, p.dx[1], p.workspace, adds(p, 1))
        return in_parts(parts, p.run)

    def backward_rows(self, p: Pass, rows: slice) -> Call:
        dw = bind_gemm(rows_of(p.x[0])[:, rows].T, rows_of(p.dy[0]), p.dx[1], p.workspace)
        return in_parts({"backward_weights": dw}, p.run)


@dataclass(frozen=True)
class MatMul(Op):
    """y = x0 @ x1 for x0 (..., m, k) and x1 (..., k, n); the leading axes broadcast."""

    accumulates: ClassVar[tuple[int, ...]] = (0, 1)
    dense: ClassVar[bool] = True

    def infer(self, *inputs: Spec) -> Spec:
        dtype = same_float("matmul", *inputs)
        a, b = (spec.shape for spec in inputs)
        if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
            raise ValueError(f"matmul: expected shapes (..., m, k) and (..., k, n), got {a} and {b}")
        return Spec((*broadcast_shapes("matmul", a[:-2], b[:-2]), a[-2], b[-1]), dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=tuple(i for i in (0, 1) if needs[1 - i]))

    def workspace(self, direction: str, *inputs: Spec) -> int:
        (m, k), n = inputs[0].shape[-2:], inputs[1].shape[-1]
        if m is None or k is None or n is None:
            return 0
        if direction == "forward":
            return gemm_bytes(m, n, k, inputs[0].dtype)
        return max(gemm_bytes(m, k, n, inputs[0].dtype), gemm_bytes(k, n, m, inputs[0].dtype))

    def cost(self, direction: str, *inputs: Spec) -> dict[str, Cost]:
        products = self.infer(*inputs).size * (inputs[0].shape[-1] or 0)
        count = 1 if direction == "forward" else 2
        return {direction: Cost(2 * count * products, count * products)}

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
                again = adds(p, which) or place in written
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
