"""Functions that are applied element by element, of one argument and of two.

A row of one argument has its derivative in x or y; one of two has those by each, times dy.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from pydtconv.ops.functions.tables.function_of_row import Row, functions_of
from pydtconv.ops.parts import exported
from pydtconv.ops.table_op import Backward, Rule, no_gradient, sloped, unbroadcast

_LN2, _LN10, _PI = math.log(2), math.log(10), math.pi


def _unary(forward: Callable[..., Any], slope: Callable[..., Any], dtype: str = "float", onnx: str = "") -> Rule:
    """slope: the derivative, a function of x or of y."""
    of_y = list(inspect.signature(slope).parameters) == ["y"]

    def gradient(b: Backward, **static: Any) -> Any:
        return (sloped(slope(b.y[0] if of_y else b.x[0]), b.dy[0]),)

    return Rule(_cast_first(forward), gradient, _same, dtype, reads_x=not of_y, reads_y=of_y, onnx=onnx)


def _cast_first(forward: Callable[..., Any]) -> Callable[..., Any]:
    """forward, for which small integers become floats that are wide enough."""

    def function(*xs: np.ndarray, **static: Any) -> Any:
        integers = all(x.dtype.kind in "iub" for x in xs)
        return forward(*(x.astype("float64") if integers else x for x in xs), **static)

    return function


def _same(*shapes: tuple[int, ...], **static: Any) -> tuple[int, ...]:
    return shapes[0]


def _step(forward: Callable[..., Any], dtype: str = "float", onnx: str = "") -> Rule:
    """A function whose gradient is zero."""
    return Rule(forward, no_gradient, _same, dtype, onnx=onnx)


def _binary(
    forward: Callable[..., Any], left: Callable[..., Any], right: Callable[..., Any], dtype: str = "promote"
) -> Rule:
    """left, right: the derivatives, functions of both arguments."""

    def gradient(b: Backward, **static: Any) -> Any:
        slopes = zip((left, right), b.shapes, strict=True)
        return tuple(unbroadcast(sloped(slope(*b.x), b.dy[0]), shape) for slope, shape in slopes)

    return Rule(_cast_first(forward) if dtype == "floats" else forward, gradient, None, dtype)


def _pair(forward: Callable[..., Any], dtype: str = "promote", onnx: str = "") -> Rule:
    """A function of two arguments without a gradient."""
    return Rule(forward, no_gradient, None, dtype, onnx=onnx)


def _erf(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), "float64")


def _erfc(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.frompyfunc(math.erfc, 1, 1)(x), "float64")


def _erfinv_of(y: float) -> float:
    """The normal quantile of the tail that is the smaller one, which keeps all digits."""
    if not -1 < y < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    if abs(y) < 1e-9:
        return y * math.sqrt(_PI) / 2
    x = math.copysign(NormalDist().inv_cdf((1 - abs(y)) / 2), y) / math.sqrt(2)
    return x - (math.erf(x) - y) * math.sqrt(_PI) / 2 * math.exp(x * x)


def _erfinv(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.frompyfunc(_erfinv_of, 1, 1)(np.asarray(x, "float64")), "float64")


def _i1(x: np.ndarray) -> np.ndarray:
    """The modified Bessel function I1, the mean of exp(x cos t) cos t over a turn."""
    cosine = np.cos((np.arange(64) + 0.5) * (2 * _PI / 64))
    return np.mean(np.exp(x[..., None] * cosine) * cosine, axis=-1)


def _sinc_slope(x: np.ndarray) -> np.ndarray:
    px = np.where(x == 0, 1, _PI * x)
    return np.where(x == 0, 0, _PI * (px * np.cos(px) - np.sin(px)) / px**2)


def _sigmoid(z: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(z / 2))


def _half(mask: np.ndarray, equal: np.ndarray) -> np.ndarray:
    """1 where mask, half where both are equal."""
    return np.where(equal, 0.5, mask)


def _safe(b: np.ndarray) -> np.ndarray:
    return np.where(b == 0, 1, b)


def _int(x: np.ndarray, function: Callable[..., Any]) -> np.ndarray:
    return x if x.dtype.kind in "iub" else function(x)


UNARY: list[Row] = [
    ("sin(x)", "The sine.", _unary(np.sin, lambda x: np.cos(x), onnx="Sin")),
    ("cos(x)", "The cosine.", _unary(np.cos, lambda x: -np.sin(x), onnx="Cos")),
    ("tan(x)", "The tangent.", _unary(np.tan, lambda y: 1 + y * y, onnx="Tan")),
    ("arcsin(x)", "The inverse sine.", _unary(np.arcsin, lambda x: 1 / np.sqrt(1 - x * x), onnx="Asin")),
    ("arccos(x)", "The inverse cosine.", _unary(np.arccos, lambda x: -1 / np.sqrt(1 - x * x), onnx="Acos")),
    ("arctan(x)", "The inverse tangent.", _unary(np.arctan, lambda x: 1 / (1 + x * x), onnx="Atan")),
    ("sinh(x)", "The hyperbolic sine.", _unary(np.sinh, lambda x: np.cosh(x), onnx="Sinh")),
    ("cosh(x)", "The hyperbolic cosine.", _unary(np.cosh, lambda x: np.sinh(x), onnx="Cosh")),
    ("arcsinh(x)", "The inverse hyperbolic sine.", _unary(np.arcsinh, lambda x: 1 / np.sqrt(x * x + 1), onnx="Asinh")),
    (
        "arccosh(x)",
        "The inverse hyperbolic cosine.",
        _unary(np.arccosh, lambda x: 1 / np.sqrt(x * x - 1), onnx="Acosh"),
    ),
    ("arctanh(x)", "The inverse hyperbolic tangent.", _unary(np.arctanh, lambda x: 1 / (1 - x * x), onnx="Atanh")),
    ("exp2(x)", "2 ** x.", _unary(np.exp2, lambda y: y * _LN2)),
    ("expm1(x)", "exp(x) - 1.", _unary(np.expm1, lambda y: y + 1)),
    ("log10(x)", "The logarithm to base 10.", _unary(np.log10, lambda x: 1 / (x * _LN10))),
    ("log1p(x)", "log(1 + x).", _unary(np.log1p, lambda x: 1 / (1 + x))),
    ("log2(x)", "The logarithm to base 2.", _unary(np.log2, lambda x: 1 / (x * _LN2))),
    ("cbrt(x)", "The cube root.", _unary(np.cbrt, lambda y: 1 / (3 * y * y), "wide float")),
    ("deg2rad(x)", "Degrees as radians.", _unary(np.deg2rad, lambda y: _PI / 180, "wide float")),
    ("rad2deg(x)", "Radians as degrees.", _unary(np.rad2deg, lambda y: 180 / _PI, "wide float")),
    ("erf(x)", "The error function.", _unary(_erf, lambda x: 2 / math.sqrt(_PI) * np.exp(-x * x), onnx="Erf")),
    ("erfc(x)", "1 - erf(x).", _unary(_erfc, lambda x: -2 / math.sqrt(_PI) * np.exp(-x * x))),
    ("erfinv(x)", "The inverse of erf.", _unary(_erfinv, lambda y: math.sqrt(_PI) / 2 * np.exp(y * y))),
    ("sinc(x)", "sin(pi x) / (pi x).", _unary(np.sinc, _sinc_slope)),
    ("i0(x)", "The modified Bessel function of order 0.", _unary(np.i0, lambda x: _i1(x), "wide float")),
    ("fabs(x)", "The absolute value, as a float.", _unary(np.abs, lambda x: np.sign(x), onnx="Abs")),
    ("floor(x)", "The largest integer up to x.", _step(np.floor, onnx="Floor")),
    ("ceil(x)", "The smallest integer from x on.", _step(np.ceil, onnx="Ceil")),
    ("trunc(x)", "x without its fraction.", _step(lambda x: _int(x, np.trunc), "promote")),
    ("round(x, decimals=0)", "x rounded, halves to even.", _step(np.round, "promote")),
    ("isfinite(x)", "Whether x is neither infinite nor NaN.", _step(np.isfinite, "bool")),
    ("isinf(x)", "Whether x is infinite.", _step(np.isinf, "bool")),
    ("isnan(x)", "Whether x is NaN.", _step(np.isnan, "bool")),
    ("isneginf(x)", "Whether x is minus infinity.", _step(np.isneginf, "bool")),
    ("isposinf(x)", "Whether x is infinity.", _step(np.isposinf, "bool")),
    ("isreal(x)", "Whether the imaginary part is zero.", _step(np.isreal, "bool")),
    ("signbit(x)", "Whether the sign is set.", _step(np.signbit, "bool")),
    ("logical_not(x)", "Whether x is false.", _step(np.logical_not, "bool", onnx="Not")),
    ("bitwise_not(x)", "All bits turned.", _step(np.bitwise_not, "bits")),
    ("bitwise_invert(x)", "All bits turned.", _step(np.bitwise_not, "bits")),
    (
        "nan_to_num(x, nan=0.0, posinf=None, neginf=None)",
        "x with numbers in the place of NaN and infinities.",
        Rule(
            lambda x, nan, posinf, neginf: np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf),
            lambda b, **static: (sloped(np.isfinite(b.x[0]), b.dy[0]),),
            _same,
            "promote",
        ),
    ),
    (
        "stop_gradient(variable)",
        "The variable, through which no gradient goes.",
        _step(lambda x: x, "promote", onnx="Identity"),
    ),
]

BINARY: list[Row] = [
    (
        "arctan2(x1, x2)",
        "The angle of the point (x2, x1).",
        _binary(np.arctan2, lambda a, b: b / (a * a + b * b), lambda a, b: -a / (a * a + b * b), "floats"),
    ),
    (
        "fmax(x1, x2)",
        "The larger one; that which is no NaN.",
        _binary(
            np.fmax,
            lambda a, b: _half((a > b) | np.isnan(b), a == b),
            lambda a, b: _half((b > a) | np.isnan(a), a == b),
        ),
    ),
    (
        "fmin(x1, x2)",
        "The smaller one; that which is no NaN.",
        _binary(
            np.fmin,
            lambda a, b: _half((a < b) | np.isnan(b), a == b),
            lambda a, b: _half((b < a) | np.isnan(a), a == b),
        ),
    ),
    (
        "fmod(x1, x2)",
        "The remainder with the sign of x1.",
        _binary(np.fmod, lambda a, b: 1, lambda a, b: -np.trunc(a / b), "numbers"),
    ),
    (
        "mod(x1, x2)",
        "The remainder with the sign of x2.",
        _binary(np.mod, lambda a, b: 1, lambda a, b: -np.floor(a / b), "numbers"),
    ),
    (
        "hypot(x1, x2)",
        "sqrt(x1^2 + x2^2).",
        _binary(np.hypot, lambda a, b: a / _safe(np.hypot(a, b)), lambda a, b: b / _safe(np.hypot(a, b)), "floats"),
    ),
    (
        "logaddexp(x1, x2)",
        "log(exp(x1) + exp(x2)).",
        _binary(np.logaddexp, lambda a, b: _sigmoid(a - b), lambda a, b: _sigmoid(b - a), "floats"),
    ),
    (
        "logaddexp2(x1, x2)",
        "log2(2^x1 + 2^x2).",
        _binary(np.logaddexp2, lambda a, b: _sigmoid((a - b) * _LN2), lambda a, b: _sigmoid((b - a) * _LN2), "floats"),
    ),
    (
        "ldexp(x1, x2)",
        "x1 * 2 ** x2.",
        _binary(lambda a, b: a * np.exp2(b), lambda a, b: np.exp2(b), lambda a, b: a * np.exp2(b) * _LN2, "floats"),
    ),
    (
        "divide_no_nan(x1, x2)",
        "x1 / x2, 0 where x2 is 0.",
        _binary(
            lambda a, b: np.where(b == 0, 0, a / _safe(b)),
            lambda a, b: np.where(b == 0, 0, 1 / _safe(b)),
            lambda a, b: np.where(b == 0, 0, -a / _safe(b) ** 2),
            "floats",
        ),
    ),
    ("floor_divide(x1, x2)", "The largest integer up to x1 / x2.", _pair(np.floor_divide, "numbers")),
    ("heaviside(x1, x2)", "0 below zero, x2 at zero, 1 above.", _pair(np.heaviside, "floats")),
    ("nextafter(x1, x2)", "The float next to x1 towards x2.", _pair(_cast_first(np.nextafter), "floats")),
    ("gcd(x1, x2)", "The greatest common divisor of integers.", _pair(np.gcd, "integers")),
    ("lcm(x1, x2)", "The least common multiple of integers.", _pair(np.lcm, "integers")),
    ("bitwise_and(x, y)", "Bits set in both.", _pair(np.bitwise_and, "bits")),
    ("bitwise_or(x, y)", "Bits set in one or both.", _pair(np.bitwise_or, "bits")),
    ("bitwise_xor(x, y)", "Bits set in one of both.", _pair(np.bitwise_xor, "bits")),
    ("bitwise_left_shift(x, y)", "x moved y bits to the left.", _pair(np.left_shift, "integers")),
    ("left_shift(x, y)", "x moved y bits to the left.", _pair(np.left_shift, "integers")),
    ("bitwise_right_shift(x, y)", "x moved y bits to the right.", _pair(np.right_shift, "integers")),
    ("right_shift(x, y)", "x moved y bits to the right.", _pair(np.right_shift, "integers")),
    ("equal(x1, x2)", "Whether both are equal.", _pair(np.equal, "bool", onnx="Equal")),
    ("not_equal(x1, x2)", "Whether they differ.", _pair(np.not_equal, "bool")),
    ("greater(x1, x2)", "Whether x1 > x2.", _pair(np.greater, "bool", onnx="Greater")),
    ("greater_equal(x1, x2)", "Whether x1 >= x2.", _pair(np.greater_equal, "bool", onnx="GreaterOrEqual")),
    ("less(x1, x2)", "Whether x1 < x2.", _pair(np.less, "bool", onnx="Less")),
    ("less_equal(x1, x2)", "Whether x1 <= x2.", _pair(np.less_equal, "bool", onnx="LessOrEqual")),
    ("logical_and(x1, x2)", "Whether both are true.", _pair(np.logical_and, "bool", onnx="And")),
    ("logical_or(x1, x2)", "Whether one or both are true.", _pair(np.logical_or, "bool", onnx="Or")),
    ("logical_xor(x1, x2)", "Whether one of both is true.", _pair(np.logical_xor, "bool", onnx="Xor")),
    (
        "isclose(x1, x2, rtol=1e-05, atol=1e-08, equal_nan=False)",
        "Whether |x1 - x2| <= atol + rtol * |x2|.",
        Rule(np.isclose, no_gradient, lambda a, b, **static: np.broadcast_shapes(a, b), "bool"),
    ),
    (
        "allclose(x1, x2, rtol=1e-05, atol=1e-08, equal_nan=False)",
        "Whether `isclose` is true everywhere.",
        Rule(np.allclose, no_gradient, lambda a, b, **static: (), "bool"),
    ),
]


def _where_gradient(b: Backward, **static: Any) -> Any:
    condition = b.x[0].astype(bool)
    return (
        None,
        unbroadcast(np.where(condition, b.dy[0], 0), b.shapes[1]),
        unbroadcast(np.where(condition, 0, b.dy[0]), b.shapes[2]),
    )


#: where(condition, x1, x2): the function is in `composed_shapes.py`, for x1 and x2 may be absent
WHERE = Rule(lambda c, a, b: np.where(c, a, b), _where_gradient, None, "behind the first", narrow=True)

_FUNCTIONS = {
    **functions_of(__name__, UNARY, narrow="stop_gradient floor ceil trunc"),
    **functions_of(__name__, BINARY, tensors=2, narrow="fmax fmin"),
}
globals().update(_FUNCTIONS)
__all__ = exported(_FUNCTIONS, math="erf erfc erfinv", core="stop_gradient")
