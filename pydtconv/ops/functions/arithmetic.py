"""Arithmetic and mathematical functions, element by element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pydtconv.dtypes import name_of
from pydtconv.ops.arithmetic import Add, Divide, Maximum, Minimum, Multiply, Power, Subtract
from pydtconv.ops.base import Op
from pydtconv.ops.functions.integers import exact
from pydtconv.ops.functions.operands import (
    as_operand,
    as_tensor,
    in_reals,
    is_scalar,
    is_symbolic,
    is_watched,
    of_one_dtype,
    unary,
)
from pydtconv.ops.parts import exported

__all__ = exported(
    numpy="""
        abs absolute add clip divide exp log maximum minimum multiply negative power reciprocal sign sqrt square
        subtract
    """,
    math="rsqrt",
    own="affine mean_of",
)


def _binary(op: Op, x1: Any, x2: Any) -> Any:
    return op(*of_one_dtype(x1, x2))


def _bounded(x: Any, low: float, high: float) -> Any:
    """x between numbers; at one that it is equal to it gets half of the gradient, as from `Maximum` and `Minimum`."""
    return unary("clip", x, low, high, 0.5)


def _is_traced(x: Any) -> bool:
    return is_symbolic(x) or (isinstance(x, np.ndarray) and is_watched(x))


def affine(x: Any, scale: float, offset: float) -> Any:
    """scale * x + offset for numbers scale and offset."""
    return unary("affine", x, float(scale), float(offset))


@exact(np.add, of_booleans=True)
def add(x1: Any, x2: Any) -> Any:
    """x1 + x2."""
    if is_scalar(x2) and not is_scalar(x1):
        return affine(x1, 1, x2)
    if is_scalar(x1) and not is_scalar(x2):
        return affine(x2, 1, x1)
    return _binary(Add(), x1, x2)


@exact(np.subtract)
def subtract(x1: Any, x2: Any) -> Any:
    """x1 - x2."""
    if is_scalar(x2) and not is_scalar(x1):
        return affine(x1, 1, -float(x2))
    if is_scalar(x1) and not is_scalar(x2):
        return affine(x2, -1, x1)
    return _binary(Subtract(), x1, x2)


@exact(np.multiply, of_booleans=True)
def multiply(x1: Any, x2: Any) -> Any:
    """x1 * x2."""
    if is_scalar(x2) and not is_scalar(x1):
        return affine(x1, x2, 0)
    if is_scalar(x1) and not is_scalar(x2):
        return affine(x2, x1, 0)
    return _binary(Multiply(), x1, x2)


def divide(x1: Any, x2: Any) -> Any:
    """x1 / x2."""
    if is_scalar(x1) != is_scalar(x2) and not (_is_traced(x1) or _is_traced(x2)):  # x1 * (1 / x2) may be another number
        return _binary(Divide(), *(float(x) if is_scalar(x) else x for x in (x1, x2)))
    if is_scalar(x2) and not is_scalar(x1) and float(x2) != 0:
        return affine(x1, 1 / float(x2), 0)
    if is_scalar(x1) and not is_scalar(x2):
        y = reciprocal(x2)
        return y if x1 == 1 else affine(y, x1, 0)
    return _binary(Divide(), x1, x2)


@exact(np.power)
def power(x1: Any, x2: Any) -> Any:
    """x1 ** x2."""
    if is_scalar(x2) and not is_scalar(x1):
        exponent = float(x2)
        kind = {1.0: "linear", 2.0: "square", 0.5: "sqrt", -1.0: "reciprocal"}.get(exponent)
        return unary(kind, x1) if kind else unary("power", x1, exponent)
    if is_scalar(x1) and not is_scalar(x2) and float(x1) > 0 and _is_traced(x2):
        return _exponential(x2, math.log(x1))
    return _binary(Power(), float(x1) if is_scalar(x1) else x1, x2)


@in_reals
def _exponential(x: Any, rate: float) -> Any:
    """exp(rate * x)"""
    return exp(affine(x, rate, 0))


@exact(np.maximum, of_booleans=True)
def maximum(x1: Any, x2: Any) -> Any:
    """The larger of x1 and x2, element by element; NaN where one of them is."""
    if is_scalar(x2) and not is_scalar(x1) and not math.isnan(x2):
        return _bounded(x1, float(x2), math.inf)
    if is_scalar(x1) and not is_scalar(x2) and not math.isnan(x1):
        return _bounded(x2, float(x1), math.inf)
    return _binary(Maximum(), x1, x2)


@exact(np.minimum, of_booleans=True)
def minimum(x1: Any, x2: Any) -> Any:
    """The smaller of x1 and x2, element by element; NaN where one of them is."""
    if is_scalar(x2) and not is_scalar(x1) and not math.isnan(x2):
        return _bounded(x1, -math.inf, float(x2))
    if is_scalar(x1) and not is_scalar(x2) and not math.isnan(x1):
        return _bounded(x2, -math.inf, float(x1))
    return _binary(Minimum(), x1, x2)


def mean_of(xs: Any) -> Any:
    """The mean of several tensors, element by element."""
    return Add(average=True)(*(as_operand(x) for x in xs))


@exact(np.negative)
def negative(x: Any) -> Any:
    """-x"""
    return affine(x, -1, 0)


@exact(np.abs, of_booleans=True)
def abs(x: Any) -> Any:
    """The absolute value."""
    return unary("abs", x)


absolute = abs


@exact(np.sign)
def sign(x: Any) -> Any:
    """-1, 0 or 1; its gradient is zero."""
    return unary("sign", x)


@exact(np.square)
def square(x: Any) -> Any:
    """x * x"""
    return unary("square", x)


def sqrt(x: Any) -> Any:
    """The square root."""
    return unary("sqrt", x)


def root(x: Any) -> Any:
    """The square root of 0 or more, with a gradient of 0 at 0: for distances and deviations, which have none there."""
    if not _is_traced(x):
        return sqrt(x)
    least = np.finfo("float64" if name_of(x.dtype) == "float64" else "float32").tiny
    return multiply(sqrt(clip(x, least, math.inf)), sign(x))


def rsqrt(x: Any) -> Any:
    """1 / sqrt(x)"""
    return unary("power", x, -0.5)


def reciprocal(x: Any) -> Any:
    """1 / x"""
    return unary("reciprocal", x)


def exp(x: Any) -> Any:
    """The exponential function."""
    return unary("exponential", x)


def log(x: Any) -> Any:
    """The natural logarithm."""
    return unary("log", x)


@exact(np.clip)
def clip(x: Any, x_min: Any, x_max: Any) -> Any:
    """min(max(x, x_min), x_max), element by element; a bound that is None is none.

    The gradient passes where x is equal to a bound that is a number, as in PyTorch.
    """
    if not (is_scalar(x_min) and is_scalar(x_max)):
        x = as_tensor(x) if x_min is None else maximum(x, x_min)
        return x if x_max is None else minimum(x, x_max)
    if float(x_min) > float(x_max):
        raise ValueError(f"clip: expected x_min <= x_max, got {x_min} and {x_max}")
    return unary("clip", x, float(x_min), float(x_max))
