"""Activations and other functions of one argument, and the bias addition.

y = f(x), element by element.  The derivative of `FROM_OUTPUT`'s kinds is computed from y, so that x need not be kept
and y may take its place; the C table is cext/nn/unary.c.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from pydtconv._ext import elem
from pydtconv.ops.base import Call, Op, Pass, Retained, Spec
from pydtconv.ops.strided import (
    adds,
    bind_copy,
    bind_reduce,
    flat,
    kernel,
    layout,
    nothing,
    reduction_workspace,
    same_float,
    sequence,
)

#: kinds that other operators can fuse, with the C code (dtconv_activation) of each; alpha: the slope of leaky_relu
FUSABLE = {"linear": 0, "relu": 1, "relu6": 2, "leaky_relu": 3, "sigmoid": 4, "tanh": 5}

#: kinds whose derivative follows from y alone, with the C code of each
FROM_OUTPUT = {
    **FUSABLE,
    "elu": 6,
    "exponential": 7,
    "softplus": 8,
    "clip": 9,
    "hard_sigmoid": 10,
    "sqrt": 11,
    "reciprocal": 12,
    "affine": 13,
}

#: kinds whose derivative needs x
FROM_INPUT = {
    "relu_general": 15,
    "gelu": 16,
    "gelu_tanh": 17,
    "silu": 18,
    "softsign": 19,
    "hard_silu": 20,
    "mish": 21,
    "log_sigmoid": 22,
    "threshold": 23,
    "tanh_shrink": 24,
    "hard_shrink": 25,
    "soft_shrink": 26,
    "squareplus": 27,
    "sparse_plus": 28,
    "abs": 29,
    "square": 30,
    "log": 31,
    "power": 32,
    "sign": 33,
}

KINDS = {**FROM_OUTPUT, **FROM_INPUT}


def parameters(kind: str, alpha: float | None, beta: float | None, gamma: float | None) -> tuple[float, float, float]:
    """The parameters of a kind with defaults filled in; their meaning is in cext/include/dtconv_nn_elem.h."""
    defaults = {
        "leaky_relu": (0.2, 0, 0),
        "elu": (1, 1, 1),
        "clip": (-1, 1, 0),
        "hard_sigmoid": (1 / 6, 0, 0),
        "affine": (1, 0, 0),
        "relu_general": (0, float("inf"), 0),
        "threshold": (0, 0, 0),
        "hard_shrink": (0.5, 0, 0),
        "soft_shrink": (0.5, 0, 0),
        "squareplus": (4, 0, 0),
        "power": (1, 0, 0),
    }
    given, default = (alpha, beta, gamma), defaults.get(kind, (0, 0, 0))
    first, second, third = (float(d if g is None else g) for g, d in zip(given, default, strict=True))
    return first, second, third


def activation_code(activation: str | None) -> int:
    """The C code of a fused activation; None is linear.  Raises ValueError for a kind that cannot be fused."""
    kind = activation or "linear"
    if kind not in FUSABLE:
        raise ValueError(f"activation: expected one of {', '.join(FUSABLE)}, got {activation!r}")
    return FUSABLE[kind]


def bind_unary(kind: str, params: tuple[float, float, float], x: np.ndarray, y: np.ndarray) -> Call:
    """y = f(x); y may be x."""
    p = np.array(params, x.dtype)
    return partial(kernel(elem.unary_forward, x.dtype), KINDS[kind], p, layout(y.shape, x, y), flat(x), flat(y))


def bind_unary_backward(
    kind: str,
    params: tuple[float, float, float],
    v: np.ndarray,
    dy: np.ndarray,
    dx: np.ndarray,
    accumulate: bool = False,
) -> Call:
    """dx (+)= dy f'(v), v = y or x as the kind says; dx may be dy."""
    p = np.array(params, dy.dtype)
    return partial(
        kernel(elem.unary_backward, dy.dtype),
        KINDS[kind],
        p,
        accumulate,
        layout(dx.shape, v, dy, dx),
        flat(v),
        flat(dy),
        flat(dx),
    )


@dataclass(frozen=True)
class Activation(Op):
    """y = f(x); kind is a key of `KINDS`, alpha, beta, gamma its parameters (None: Keras's defaults)."""

    kind: str
    alpha: float | None = None
    beta: float | None = None
    gamma: float | None = None

    inplace: ClassVar[tuple[int, ...]] = (0,)
    inplace_backward: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[tuple[int, ...]] = (0,)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Activation: expected kind to be one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.kind in ("elu", "leaky_relu") and self.parameters[0] < 0:
            raise ValueError(f"{self.kind}: expected a slope of 0 or more, got {self.parameters[0]}")

    @property
    def name(self) -> str:
        return self.kind

    @property
    def parameters(self) -> tuple[float, float, float]:
        return parameters(self.kind, self.alpha, self.beta, self.gamma)

    def infer(self, *inputs: Spec) -> Spec:
        same_float(self.kind, *inputs)
        return inputs[0]

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        if self.kind in ("linear", "affine", "sign"):
            return Retained()
        return Retained(y=(0,)) if self.kind in FROM_OUTPUT else Retained(x=(0,))

    def forward(self, p: Pass) -> Call:
        return bind_unary(self.kind, self.parameters, p.x[0], p.y[0])

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return nothing
        v = p.y[0] if p.y[0] is not None else p.x[0] if p.x[0] is not None else p.dy[0]
        return bind_unary_backward(self.kind, self.parameters, v, p.dy[0], p.dx[0], adds(p, 0))


@dataclass(frozen=True)
class Bias(Op):
    """y = x + b over the last axis: x (..., c), b (c,).  db is the sum of dy over all other axes."""

    inplace: ClassVar[tuple[int, ...]] = (0,)
    inplace_backward: ClassVar[tuple[int, ...]] = (0,)
    passes_dy: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[tuple[int, ...]] = (0, 1)

    def infer(self, *inputs: Spec) -> Spec:
        same_float("bias", *inputs)
        x, b = inputs
        if len(b.shape) != 1 or not x.shape or x.shape[-1] != b.shape[0]:
            raise ValueError(f"Bias: expected b of shape ({x.shape[-1] if x.shape else '?'},), got {b.shape}")
        return x

    def workspace(self, direction: str, *inputs: Spec) -> int:
        shape = inputs[0].shape
        return 0 if direction == "forward" else reduction_workspace(shape, range(len(shape) - 1), inputs[0].dtype)

    def forward(self, p: Pass) -> Call:
        x, b = p.x
        y = p.y[0]
        none = np.zeros(3, x.dtype)
        return partial(
            kernel(elem.add_activation, x.dtype), 0, none, layout(y.shape, x, b, y), flat(x), flat(b), flat(y)
        )

    def backward(self, p: Pass) -> Call:
        dy, calls = p.dy[0], []
        if p.dx[1] is not None:
            db = p.dx[1].reshape((1,) * (dy.ndim - 1) + (-1,))
            calls.append(bind_reduce("sum", range(dy.ndim - 1), dy, db, p.workspace, accumulate=adds(p, 1)))
        if p.dx[0] is not None:
            calls.append(bind_copy(dy, p.dx[0], accumulate=adds(p, 0)))
        return sequence(calls)
