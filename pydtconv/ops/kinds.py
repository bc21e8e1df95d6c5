"""Functions of one argument, activations among them: one row each, of what the C library's table does not say.

cext/cuda/activations.h has their formulas and gradients for kernels, and says what the gradient is read from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from pydtconv.conv.activations import GROUPS

__all__ = ["FROM_OUTPUT", "FUSABLE", "SMOOTH"]

_INNER = math.sqrt(2.0 / math.pi)


class Kind(NamedTuple):
    """A function of x with the parameters p.

    gradient(ops, x, y, dy, *p): dx in functions of `pydtconv.ops`, for gradients of gradients; None: it is zero.  Where
    the function is constant dy is left out, not multiplied by 0, for it may be infinite.  x is y where the function is
    fused into another operator.
    onnx(emit, x, *p): the name of y; emit(operator, *operands, **attributes) adds a node of ONNX.
    defaults: of the parameters, which kernels find in p[0], p[1], p[2].
    """

    gradient: Callable[..., Any]
    onnx: Callable[..., str]
    defaults: tuple[float, ...] = ()


def _between(ops: Any, x: Any, low: float, high: float, dy: Any, otherwise: Any = 0.0) -> Any:
    """dy where x lies between two numbers."""
    return ops.where(ops.logical_and(x > low, x < high), dy, otherwise)


def _beyond(ops: Any, x: Any, y: Any, dy: Any, least: float) -> Any:
    return ops.where(ops.abs(x) > least, dy, 0.0)


def _elu_gradient(ops: Any, x: Any, y: Any, dy: Any, a: float, b: float, c: float) -> Any:
    return ops.where(x > 0.0, b * dy, dy * (a * b / c * ops.exp(ops.minimum(x, 0.0) / c)) if a else 0.0)


def _elu(c: Any, x: str, alpha: float, scale: float, width: float) -> str:
    if width == 1 and scale == 1:
        return str(c("Elu", x, alpha=alpha))
    if width == 1:
        return str(c("Selu", x, alpha=alpha, gamma=scale))
    below = c("Mul", c("Sub", c("Exp", c("Div", c("Min", x, 0.0), width)), 1.0), alpha)
    return str(c("Mul", c("Add", c("Max", x, 0.0), below), scale))


def _clip_gradient(ops: Any, x: Any, y: Any, dy: Any, low: float, high: float, at_bound: float) -> Any:
    bound = ops.logical_or(ops.equal(x, low), ops.equal(x, high))
    return _between(ops, x, low, high, dy, ops.where(bound, at_bound * dy, 0.0))


def _clip(c: Any, x: str, low: float, high: float, _: float) -> str:
    if math.isfinite(low):
        x = c("Max", x, low)
    return str(c("Min", x, high)) if math.isfinite(high) else x


def _relu_general(c: Any, x: str, slope: float, maximum: float, threshold: float) -> str:
    above = c("Min", x, maximum) if math.isfinite(maximum) else x
    below = c("Mul", c("Sub", x, threshold), slope)
    return str(c("Where", c("Greater", x, threshold), above, below))


def _affine(c: Any, x: str, scale: float, offset: float) -> str:
    y = x if scale == 1 else c("Neg", x) if scale == -1 else c("Mul", x, scale)
    return str(y if offset == 0 else c("Add", y, offset))


def _gelu_gradient(ops: Any, x: Any, y: Any, dy: Any) -> Any:
    share = 0.5 * (1.0 + ops.erf(x * math.sqrt(0.5)))
    return dy * (share + x * ops.exp(ops.square(x) * -0.5) * (1.0 / math.sqrt(2.0 * math.pi)))


def _gelu_tanh_gradient(ops: Any, x: Any, y: Any, dy: Any) -> Any:
    t = ops.tanh(_INNER * (x + 0.044715 * ops.power(x, 3.0)))
    return dy * (0.5 * (1.0 + t) + 0.5 * _INNER * x * (1.0 - ops.square(t)) * (1.0 + 0.134145 * ops.square(x)))


def _gelu_tanh(c: Any, x: str) -> str:
    cube = c("Mul", c("Mul", c("Mul", x, x), x), 0.044715)
    tanh = c("Tanh", c("Mul", c("Add", x, cube), _INNER))
    return str(c("Mul", c("Mul", x, 0.5), c("Add", tanh, 1.0)))


def _silu_gradient(ops: Any, x: Any, y: Any, dy: Any) -> Any:
    s = ops.sigmoid(x)
    return dy * (s * (1.0 + x * (1.0 - s)))


def _mish_gradient(ops: Any, x: Any, y: Any, dy: Any) -> Any:
    t = ops.tanh(ops.softplus(x))
    return dy * (t + x * ops.sigmoid(x) * (1.0 - ops.square(t)))


def _sparse_plus(c: Any, x: str) -> str:
    bent = c("Div", c("Mul", c("Add", x, 1.0), c("Add", x, 1.0)), 4.0)
    return str(c("Where", c("LessOrEqual", x, -1.0), 0.0, c("Where", c("Less", x, 1.0), bent, x)))


# fmt: off
ROWS: dict[str, Kind] = {
    "linear": Kind(lambda o, x, y, g: g, lambda c, x: x),
    "relu": Kind(lambda o, x, y, g: o.where(x > 0.0, g, 0.0), lambda c, x: c("Relu", x)),
    "relu6": Kind(lambda o, x, y, g: _between(o, x, 0.0, 6.0, g), lambda c, x: c("Clip", x, 0.0, 6.0)),
    "leaky_relu": Kind(
        lambda o, x, y, g, slope: o.where(x > 0.0, g, slope * g if slope else 0.0),
        lambda c, x, slope: c("LeakyRelu", x, alpha=slope), (0.2,),
    ),
    "sigmoid": Kind(lambda o, x, y, g: g * (y * (1.0 - y)), lambda c, x: c("Sigmoid", x)),
    "tanh": Kind(lambda o, x, y, g: g * (1.0 - o.square(y)), lambda c, x: c("Tanh", x)),
    "elu": Kind(_elu_gradient, _elu, (1, 1, 1)),
    "exponential": Kind(lambda o, x, y, g: g * y, lambda c, x: c("Exp", x)),
    "softplus": Kind(lambda o, x, y, g: g * o.sigmoid(x), lambda c, x: c("Softplus", x)),
    "hard_sigmoid": Kind(
        lambda o, x, y, g, slope: _between(o, x, -0.5 / slope, 0.5 / slope, slope * g) if slope else None,
        lambda c, x, slope: c("HardSigmoid", x, alpha=slope, beta=0.5), (1 / 6,),
    ),
    "sqrt": Kind(lambda o, x, y, g: g * (0.5 / y), lambda c, x: c("Sqrt", x)),
    "reciprocal": Kind(lambda o, x, y, g: g * -o.square(y), lambda c, x: c("Reciprocal", x)),
    "affine": Kind(lambda o, x, y, g, scale, offset: g * scale, _affine, (1, 0)),
    "clip": Kind(_clip_gradient, _clip, (-1, 1, 1)),
    "relu_general": Kind(
        lambda o, x, y, g, slope, top, start: o.where(x > start, o.where(x < top, g, 0.0), slope * g if slope else 0.0),
        _relu_general, (0, math.inf, 0),
    ),
    "gelu": Kind(
        _gelu_gradient,
        lambda c, x: c("Mul", c("Mul", x, 0.5), c("Add", c("Erf", c("Mul", x, math.sqrt(0.5))), 1.0)),
    ),
    "gelu_tanh": Kind(_gelu_tanh_gradient, _gelu_tanh),
    "silu": Kind(_silu_gradient, lambda c, x: c("Mul", x, c("Sigmoid", x))),
    "softsign": Kind(lambda o, x, y, g: g * (1.0 / o.square(1.0 + o.abs(x))), lambda c, x: c("Softsign", x)),
    "hard_silu": Kind(
        lambda o, x, y, g: o.where(x > 3.0, g, _between(o, x, -3.0, 3.0, g * ((2.0 * x + 3.0) / 6.0))),
        lambda c, x: c("HardSwish", x),
    ),
    "mish": Kind(_mish_gradient, lambda c, x: c("Mul", x, c("Tanh", c("Softplus", x)))),
    "log_sigmoid": Kind(lambda o, x, y, g: g * o.sigmoid(-x), lambda c, x: c("Neg", c("Softplus", c("Neg", x)))),
    "threshold": Kind(
        lambda o, x, y, g, least, other: o.where(x > least, g, 0.0),
        lambda c, x, least, other: c("Where", c("Greater", x, least), x, other), (0, 0),
    ),
    "tanh_shrink": Kind(lambda o, x, y, g: g * o.square(o.tanh(x)), lambda c, x: c("Sub", x, c("Tanh", x))),
    "hard_shrink": Kind(
        _beyond, lambda c, x, least: c("Where", c("Greater", c("Abs", x), least), x, 0.0), (0.5,)
    ),
    "soft_shrink": Kind(
        _beyond, lambda c, x, least: c("Mul", c("Sign", x), c("Max", c("Sub", c("Abs", x), least), 0.0)), (0.5,)
    ),
    "squareplus": Kind(
        lambda o, x, y, g, b: g * (0.5 * (1.0 + x / o.sqrt(o.square(x) + b))),
        lambda c, x, b: c("Div", c("Add", x, c("Sqrt", c("Add", c("Mul", x, x), b))), 2.0), (4,),
    ),
    "sparse_plus": Kind(
        lambda o, x, y, g: o.where(x > 1.0, g, _between(o, x, -1.0, 1.0, g * ((x + 1.0) * 0.5))), _sparse_plus
    ),
    "abs": Kind(lambda o, x, y, g: o.where(o.equal(x, 0.0), 0.0, g * o.sign(x)), lambda c, x: c("Abs", x)),
    "square": Kind(lambda o, x, y, g: g * (x * 2.0), lambda c, x: c("Mul", x, x)),
    "log": Kind(lambda o, x, y, g: g * (1.0 / x), lambda c, x: c("Log", x)),
    "power": Kind(
        lambda o, x, y, g, n: g * (n * o.power(x, n - 1.0)) if n else g * 0.0, lambda c, x, n: c("Pow", x, n), (1,)
    ),
    "sign": Kind(lambda o, x, y, g: None, lambda c, x: c("Sign", x)),
}
# fmt: on

KINDS = tuple(GROUPS)
#: kinds that other operators can fuse
FUSABLE = tuple(kind for kind, group in GROUPS.items() if group == "fused")
#: kinds that a dense layer can fuse as well, keeping what they are applied to
SMOOTH = ("gelu", "gelu_tanh", "silu")
#: kinds whose derivative follows from y alone
FROM_OUTPUT = tuple(kind for kind, group in GROUPS.items() if group != "from input")


def given(kind: str, *parameters: float | None) -> tuple[float, ...]:
    """As many parameters as the kind has; None stands for the default."""
    defaults = ROWS[kind].defaults
    values = (*parameters, *(None,) * len(defaults))
    return tuple(float(d if v is None else v) for v, d in zip(values, defaults, strict=False))
