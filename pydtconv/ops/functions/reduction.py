"""Reductions over axes."""

from __future__ import annotations

from typing import Any

from pydtconv.ops.functions.arithmetic import sqrt, square, subtract
from pydtconv.ops.functions.operands import as_operand
from pydtconv.ops.functions.shape import reshape
from pydtconv.ops.reduction import ArgMax, Axes, Max, Mean, Min, Sum

__all__ = ["amax", "amin", "argmax", "max", "mean", "min", "std", "sum", "var"]


def _axes(axis: Axes) -> int | tuple[int, ...] | None:
    return axis if axis is None or isinstance(axis, int) else tuple(axis)


def sum(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The sum over axes."""
    return Sum(_axes(axis), keepdims)(as_operand(x))


def mean(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The mean over axes."""
    return Mean(_axes(axis), keepdims)(as_operand(x))


def max(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The largest element over axes; equal ones share the gradient."""
    return Max(_axes(axis), keepdims)(as_operand(x))


def min(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The smallest element over axes; equal ones share the gradient."""
    return Min(_axes(axis), keepdims)(as_operand(x))


amax, amin = max, min


def var(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The variance over axes (divided by the number of elements)."""
    return mean(square(subtract(x, mean(x, axis, True))), axis, keepdims)


def std(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The standard deviation over axes."""
    return sqrt(var(x, axis, keepdims))


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The index of the largest element; over all elements where axis is None."""
    x = as_operand(x)
    if axis is None:
        if keepdims:
            raise ValueError("argmax: expected an axis with keepdims=True, got None")
        x, axis = reshape(x, (-1,)), 0
    return ArgMax(axis, keepdims)(x)
