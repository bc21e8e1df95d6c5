"""Activations as ONNX nodes: one row for each kind of `ops.Activation`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pydtconv.dtypes import real
from pydtconv.graph import Tensor
from pydtconv.interchange.onnx_writer import Writer
from pydtconv.ops.activation import parameters


class Calculator(NamedTuple):
    """Formulas on values of one dtype; numbers among the arguments become constants."""

    writer: Writer
    dtype: str

    def __call__(self, kind: str, *values: Any, **attributes: Any) -> str:
        names = [v if isinstance(v, str) else self.writer.constant(np.array(v, self.dtype)) for v in values]
        return self.writer.emit(kind, *names, **attributes)


def _gelu(c: Calculator, x: str) -> str:
    erf = c("Erf", c("Mul", x, math.sqrt(0.5)))
    return c("Mul", c("Mul", x, 0.5), c("Add", erf, 1.0))


def _gelu_tanh(c: Calculator, x: str) -> str:
    cube = c("Mul", c("Mul", c("Mul", x, x), x), 0.044715)
    tanh = c("Tanh", c("Mul", c("Add", x, cube), math.sqrt(2 / math.pi)))
    return c("Mul", c("Mul", x, 0.5), c("Add", tanh, 1.0))


def _elu(c: Calculator, x: str, alpha: float, scale: float, width: float) -> str:
    if width == 1 and scale == 1:
        return c("Elu", x, alpha=alpha)
    if width == 1:
        return c("Selu", x, alpha=alpha, gamma=scale)
    below = c("Mul", c("Sub", c("Exp", c("Div", c("Min", x, 0.0), width)), 1.0), alpha)
    return c("Mul", c("Add", c("Max", x, 0.0), below), scale)


def _relu_general(c: Calculator, x: str, slope: float, maximum: float, threshold: float) -> str:
    above = c("Min", x, maximum) if math.isfinite(maximum) else x
    below = c("Mul", c("Sub", x, threshold), slope)
    return c("Where", c("Greater", x, threshold), above, below)


def _clip(c: Calculator, x: str, low: float, high: float) -> str:
    if math.isfinite(low):
        x = c("Max", x, low)
    return c("Min", x, high) if math.isfinite(high) else x


def _affine(c: Calculator, x: str, scale: float, offset: float) -> str:
    y = x if scale == 1 else c("Neg", x) if scale == -1 else c("Mul", x, scale)
    return y if offset == 0 else c("Add", y, offset)


def _sparse_plus(c: Calculator, x: str) -> str:
    bent = c("Div", c("Mul", c("Add", x, 1.0), c("Add", x, 1.0)), 4.0)
    return c("Where", c("LessOrEqual", x, -1.0), 0.0, c("Where", c("Less", x, 1.0), bent, x))


def _squareplus(c: Calculator, x: str, b: float) -> str:
    return c("Div", c("Add", x, c("Sqrt", c("Add", c("Mul", x, x), b))), 2.0)


#: by kind: from a calculator, x and the kind's parameters to y
ROWS: dict[str, Callable[..., str]] = {
    "linear": lambda c, x: x,
    "relu": lambda c, x: c("Relu", x),
    "relu6": lambda c, x: c("Clip", x, 0.0, 6.0),
    "leaky_relu": lambda c, x, slope: c("LeakyRelu", x, alpha=slope),
    "sigmoid": lambda c, x: c("Sigmoid", x),
    "tanh": lambda c, x: c("Tanh", x),
    "elu": _elu,
    "exponential": lambda c, x: c("Exp", x),
    "softplus": lambda c, x: c("Softplus", x),
    "clip": _clip,
    "hard_sigmoid": lambda c, x, slope: c("HardSigmoid", x, alpha=slope, beta=0.5),
    "sqrt": lambda c, x: c("Sqrt", x),
    "reciprocal": lambda c, x: c("Reciprocal", x),
    "affine": _affine,
    "relu_general": _relu_general,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": lambda c, x: c("Mul", x, c("Sigmoid", x)),
    "softsign": lambda c, x: c("Softsign", x),
    "hard_silu": lambda c, x: c("HardSwish", x),
    "mish": lambda c, x: c("Mul", x, c("Tanh", c("Softplus", x))),
    "log_sigmoid": lambda c, x: c("Neg", c("Softplus", c("Neg", x))),
    "threshold": lambda c, x, least, other: c("Where", c("Greater", x, least), x, other),
    "tanh_shrink": lambda c, x: c("Sub", x, c("Tanh", x)),
    "hard_shrink": lambda c, x, least: c("Where", c("Greater", c("Abs", x), least), x, 0.0),
    "soft_shrink": lambda c, x, least: c("Mul", c("Sign", x), c("Max", c("Sub", c("Abs", x), least), 0.0)),
    "squareplus": _squareplus,
    "sparse_plus": _sparse_plus,
    "abs": lambda c, x: c("Abs", x),
    "square": lambda c, x: c("Mul", x, x),
    "log": lambda c, x: c("Log", x),
    "power": lambda c, x, exponent: c("Pow", x, exponent),
    "sign": lambda c, x: c("Sign", x),
}
#: how many parameters a kind has
_COUNTS = {"elu": 3, "relu_general": 3, "clip": 2, "affine": 2, "threshold": 2}
_ONE = ("leaky_relu", "hard_sigmoid", "hard_shrink", "soft_shrink", "squareplus", "power")


def activation(writer: Writer, like: Tensor, x: str, kind: str | None, *given: float | None) -> str:
    """The name of f(x); like: a tensor of x's dtype.  given: the parameters, None for their defaults."""
    if kind is None:
        return x
    alpha, beta, gamma = (*given, None, None, None)[:3]
    count = _COUNTS.get(kind, 1 if kind in _ONE else 0)
    return ROWS[kind](Calculator(writer, real(like.dtype)), x, *parameters(kind, alpha, beta, gamma)[:count])
