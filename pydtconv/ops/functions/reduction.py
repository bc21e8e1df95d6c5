"""Reductions over axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.hooks import as_result
from pydtconv.ops.checks import FLOATING, normalize_axes
from pydtconv.ops.functions.arithmetic import maximum, minimum, root, square, subtract
from pydtconv.ops.functions.operands import as_float, as_tensor, in_reals, is_symbolic
from pydtconv.ops.functions.shape import reshape
from pydtconv.ops.parts import exported
from pydtconv.ops.reduction import ArgMax, Axes, Max, Mean, Min, Sum
from pydtconv.ops.table_op import RULES, Rule, TableOp, counted, no_gradient

__all__ = exported(numpy="amax amin argmax max mean min std sum var")


def _axes(axis: Axes) -> int | tuple[int, ...] | None:
    return axis if axis is None or isinstance(axis, int) else tuple(axis)


def _extents(extents: tuple[int, ...], axis: Axes, keepdims: bool) -> tuple[int, ...]:
    axes = range(len(extents)) if axis is None else normalize_axes("reduction", axis, len(extents))
    if keepdims:
        return tuple(1 if d in axes else n for d, n in enumerate(extents))
    return tuple(n for d, n in enumerate(extents) if d not in axes)


_SUM, _MAX, _MIN = (f"{name} of integers" for name in ("sum", "max", "min"))
_EXACT: dict[str, Callable[..., Any]] = {_SUM: np.sum, _MAX: np.max, _MIN: np.min}
for _name, _function in _EXACT.items():
    _kind = "count" if _name == _SUM else "first"
    RULES[_name] = Rule(
        lambda x, axis, keepdims, _function=_function: _function(x, axis=axis, keepdims=keepdims),
        no_gradient,
        _extents,
        _kind,
    )


def _is_of_nothing(x: Any, axis: Axes) -> bool:
    """Whether x is an array, and elements of the result are made of none of its elements."""
    if is_symbolic(x) or x.size:
        return False
    axes = normalize_axes("reduction", axis, x.ndim)
    return math.prod(x.shape[d] for d in axes) == 0 and 0 not in _extents(x.shape, axis, False)


def _reduced(name: str, op: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    """By an operator on floats; integers exactly."""
    x, axes = as_tensor(x), _axes(axis)
    dtype = str(x.dtype)
    if name != _SUM and _is_of_nothing(x, axis):
        raise ValueError(f"{name.split()[0]}: expected one element or more, got none: shape {x.shape}, axis={axis}")
    if dtype in FLOATING:
        return op(axes, keepdims)(x)
    if is_symbolic(x):
        return TableOp(name, (("axis", axes), ("keepdims", bool(keepdims))))(x)
    found = _EXACT[name](x, axis=axes, keepdims=bool(keepdims))
    return as_result(np.asarray(found).astype(counted(dtype) if name == _SUM else dtype, copy=False))


def sum(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The sum over axes."""
    return _reduced(_SUM, Sum, x, axis, keepdims)


def mean(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The mean over axes; NaN where there is nothing."""
    x = as_float(x)
    if _is_of_nothing(x, axis):
        return as_result(np.full(_extents(x.shape, axis, keepdims), math.nan, x.dtype))
    return Mean(_axes(axis), keepdims)(x)


def amax(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The largest element over axes; equal ones share the gradient."""
    return _reduced(_MAX, Max, x, axis, keepdims)


def amin(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The smallest element over axes; equal ones share the gradient."""
    return _reduced(_MIN, Min, x, axis, keepdims)


def max(x: Any, axis: Axes = None, keepdims: bool = False, initial: float | None = None) -> Any:
    """The largest element over axes, and of `initial`; equal ones share the gradient."""
    x = as_tensor(x)
    if initial is not None and _is_of_nothing(x, axis):
        return as_result(np.full(_extents(x.shape, axis, keepdims), initial, x.dtype))
    y = amax(x, axis, keepdims)
    return y if initial is None else maximum(y, initial)


def min(x: Any, axis: Axes = None, keepdims: bool = False, initial: float | None = None) -> Any:
    """The smallest element over axes, and of `initial`; equal ones share the gradient."""
    x = as_tensor(x)
    if initial is not None and _is_of_nothing(x, axis):
        return as_result(np.full(_extents(x.shape, axis, keepdims), initial, x.dtype))
    y = amin(x, axis, keepdims)
    return y if initial is None else minimum(y, initial)


@in_reals
def var(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The variance over axes (divided by the number of elements)."""
    return mean(square(subtract(x, mean(x, axis, True))), axis, keepdims)


@in_reals
def std(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """The standard deviation over axes."""
    return root(var(x, axis, keepdims))


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The index of the largest element; over all elements where axis is None."""
    x = as_tensor(x)
    if axis is None:
        found = ArgMax(0, False)(reshape(x, (-1,)))
        return reshape(found, (1,) * len(x.shape)) if keepdims else found
    return ArgMax(axis, keepdims)(x)
