"""Sums, extrema and differences, made of other functions, which give them their gradients."""

from __future__ import annotations

import functools
import math
from typing import Any

from pydtconv.dtypes import FLOATING, name_of
from pydtconv.ops.checks import normalize_axes
from pydtconv.ops.functions.arithmetic import (
    add,
    divide,
    exp,
    log,
    multiply,
    root,
    square,
    subtract,
)
from pydtconv.ops.functions.operands import as_float, as_operand, as_tensor, in_reals
from pydtconv.ops.functions.reduction import amax, amin, mean
from pydtconv.ops.functions.reduction import sum as sum_over
from pydtconv.ops.functions.shape import (
    cast,
    reshape,
    slice_along,
    squeeze,
)
from pydtconv.ops.functions.tables import elementwise, rearranging, reducing
from pydtconv.ops.functions.tables.composed_shapes import _isnan, ndim, where
from pydtconv.ops.functions.tables.creating import ones_like
from pydtconv.ops.functions.tables.function_of_row import operands_of
from pydtconv.ops.parts import exported
from pydtconv.ops.reduction import Axes, Max

__all__ = exported(
    numpy="average diff nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar ptp trace trapezoid",
    nn="moments",
    math="logsumexp",
)


def ptp(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The largest less the smallest over axes."""
    return subtract(amax(x, axis, keepdims), amin(x, axis, keepdims))


@in_reals
def logsumexp(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) over axes, without overflow."""
    stop: Any = elementwise._FUNCTIONS["stop_gradient"]
    x = as_float(x)
    top = stop(Max(axis if axis is None or isinstance(axis, int) else tuple(axis), True)(x))  # 0 of nothing
    top = where(elementwise._FUNCTIONS["isfinite"](top), top, 0.0)
    y = add(log(sum_over(exp(subtract(x, top)), axis, True)), top)
    if keepdims:
        return y
    axes = normalize_axes("logsumexp", axis, len(x.shape))
    return squeeze(y, axes) if axes else y


def average(x: Any, axis: Axes = None, weights: Any = None) -> Any:
    """The mean over axes, with weights of the shape of x or, as a vector, of one axis."""
    if weights is None:
        return mean(x, axis)
    x, weights = operands_of(x, weights)
    if ndim(weights) == 1 and ndim(x) > 1:
        axes = normalize_axes("average", axis, ndim(x))
        if len(axes) != 1:
            raise ValueError(f"average: axis: expected one axis for weights of a vector, got {axis!r}")
        along = [1] * ndim(x)
        along[axes[0]] = -1
        weights = reshape(weights, along)
    weights = multiply(weights, ones_like(x, weights.dtype))
    return divide(sum_over(multiply(x, weights), axis), sum_over(weights, axis))


@in_reals
def moments(x: Any, axes: Axes, keepdims: bool = False, synchronized: bool = False) -> tuple[Any, Any]:
    """Mean and variance over axes."""
    if synchronized:
        raise ValueError("moments: synchronized: expected False, got True: BatchNormalization has it")
    center = mean(x, axes, True)
    return mean(x, axes, keepdims), mean(square(subtract(x, center)), axes, keepdims)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Sums of diagonals."""
    return sum_over(rearranging._FUNCTIONS["diagonal"](x, offset, axis1, axis2), -1)


def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    """Differences of neighbours along an axis, n times; of booleans, whether they differ."""
    a = as_tensor(a)
    difference: Any = elementwise._FUNCTIONS["not_equal"] if a.dtype == "bool" else subtract
    for _ in range(min(n, a.shape[axis] or n)):  # nothing is left then
        a = difference(slice_along(a, axis, 1, None), slice_along(a, axis, 0, -1))
    return a


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """The integral along an axis by the trapezoidal rule, at places x or dx apart."""
    y = as_operand(y)
    heights = multiply(add(slice_along(y, axis, 1, None), slice_along(y, axis, 0, -1)), 0.5)
    if x is None:
        return sum_over(multiply(heights, float(dx)), axis)
    widths = diff(x, 1, -1 if ndim(x) == 1 else axis)
    if ndim(x) == 1:
        along = [1] * len(y.shape)
        along[axis] = -1
        widths = reshape(widths, along)
    return sum_over(multiply(heights, widths), axis)


def _filled(x: Any, value: float) -> Any:
    """x with a value for NaN, and where there is one."""
    gaps = _isnan(x)
    return where(gaps, value, x), gaps


def _has_none(plain: Any) -> Any:
    """Decorator of a function for data with gaps: of integers and booleans, which have none, it is the plain one."""

    def decorator(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(x: Any, *args: Any, **kwargs: Any) -> Any:
            (operand,) = operands_of(x)
            whole = name_of(operand.dtype) not in FLOATING
            return plain(operand, *args, **kwargs) if whole else function(x, *args, **kwargs)

        return wrapper

    return decorator


def _nan_extremum(reduce: Any, worst: float, x: Any, axis: Axes, keepdims: bool) -> Any:
    filled, gaps = _filled(as_operand(x), worst)
    nothing: Any = reducing._FUNCTIONS["all"](gaps, axis, keepdims)
    return where(nothing, math.nan, reduce(filled, axis, keepdims))


@_has_none(amax)
def nanmax(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The largest element over axes that is no NaN."""
    return _nan_extremum(amax, -math.inf, x, axis, keepdims)


@_has_none(amin)
def nanmin(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The smallest element over axes that is no NaN."""
    return _nan_extremum(amin, math.inf, x, axis, keepdims)


@_has_none(sum_over)
def nansum(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The sum over axes of what is no NaN."""
    return sum_over(_filled(as_operand(x), 0.0)[0], axis, keepdims)


@_has_none(reducing._FUNCTIONS["prod"])
def nanprod(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The product over axes of what is no NaN."""
    return reducing._FUNCTIONS["prod"](_filled(as_operand(x), 1.0)[0], axis, keepdims)


@_has_none(reducing._FUNCTIONS["cumsum"])
def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """cumsum with 0 for NaN."""
    return reducing._FUNCTIONS["cumsum"](_filled(as_operand(x), 0.0)[0], axis, dtype)


@_has_none(reducing._FUNCTIONS["cumprod"])
def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """cumprod with 1 for NaN."""
    return reducing._FUNCTIONS["cumprod"](_filled(as_operand(x), 1.0)[0], axis, dtype)


def _not_nan(x: Any) -> Any:
    return elementwise._FUNCTIONS["logical_not"](_isnan(x))


def nanmean(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The mean over axes of what is no NaN."""
    x = as_operand(x)
    filled, _ = _filled(x, 0.0)
    counts = sum_over(cast(_not_nan(x), str(x.dtype)), axis, keepdims)
    return divide(sum_over(filled, axis, keepdims), counts)


def nanvar(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The variance over axes of what is no NaN."""
    x = as_operand(x)
    filled, gaps = _filled(x, 0.0)
    far = where(gaps, 0.0, subtract(filled, nanmean(x, axis, True)))
    counts = sum_over(cast(_not_nan(x), str(x.dtype)), axis, keepdims)
    return divide(sum_over(square(far), axis, keepdims), counts)


def nanstd(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The standard deviation over axes of what is no NaN."""
    return root(nanvar(x, axis, keepdims))
