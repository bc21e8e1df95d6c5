"""Reductions over axes and running sums, beside those that have operators of their own (ops/reduction.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.ops.checks import normalize_axes
from pydtconv.ops.functions.tables.function_of_row import Row, functions_of
from pydtconv.ops.parts import exported
from pydtconv.ops.table_op import Backward, Rule, no_gradient, sloped

Shape = tuple[int, ...]
Axes = int | Sequence[int] | None


def _reduced(extents: Shape, axis: Axes = None, keepdims: bool = False, **static: Any) -> Shape:
    axes = normalize_axes("axis", axis, len(extents))
    if keepdims:
        return tuple(1 if d in axes else n for d, n in enumerate(extents))
    return tuple(n for d, n in enumerate(extents) if d not in axes)


def _wide(y: np.ndarray, shape: Shape, axis: Axes) -> np.ndarray:
    """y with the reduced axes put back as 1."""
    return y.reshape(_reduced(shape, axis, True))


def _axes(axis: Axes) -> Any:
    return axis if axis is None or isinstance(axis, int) else tuple(axis)


def _counted(x: np.ndarray) -> np.ndarray:
    """Booleans as numbers."""
    return x.astype(np.int32) if x.dtype == bool else x


def _prod(x: np.ndarray, axis: Axes, keepdims: bool, dtype: str | None) -> Any:
    return np.prod(_counted(x), axis=_axes(axis), keepdims=keepdims, dtype=dtype)


def _prod_gradient(b: Backward, axis: Axes, keepdims: bool, dtype: str | None) -> Any:
    """dy times the product of all others, which is not y / x where that is 0."""
    x, axes = b.x[0], normalize_axes("prod", axis, b.x[0].ndim)
    zero = x == 0
    zeros = zero.sum(axes, keepdims=True)
    rest = np.prod(np.where(zero, 1, x), axes, keepdims=True)
    others = np.where(zeros == 0, rest / np.where(zero, 1, x), np.where(zero & (zeros == 1), rest, 0))
    return (_wide(b.dy[0], x.shape, axis) * others,)


def _line(x: np.ndarray, axis: int | None) -> tuple[np.ndarray, int]:
    return (x.reshape(-1), 0) if axis is None else (x, axis)


def _cumulated(extents: Shape, axis: int | None, **static: Any) -> Shape:
    return (math.prod(extents),) if axis is None else extents


def _backwards(x: np.ndarray, axis: int) -> np.ndarray:
    return np.flip(np.cumsum(np.flip(x, axis), axis), axis)


def _cumsum_gradient(b: Backward, axis: int | None, dtype: str | None) -> Any:
    return (_backwards(b.dy[0], 0 if axis is None else axis).reshape(b.shapes[0]),)


def _cumprod_gradient(b: Backward, axis: int | None, dtype: str | None) -> Any:
    x, along = _line(b.x[0], axis)
    x, dy = np.moveaxis(x, along, 0), np.moveaxis(b.dy[0], along, 0)
    if (x != 0).all():
        dx = _backwards(dy * np.cumprod(x, 0), 0) / x
    else:
        dx = np.empty_like(x)
        for i in range(len(x)):
            without = x.copy()
            without[i] = 1
            dx[i] = (dy * np.cumprod(without, 0))[i:].sum(0)
    return (np.moveaxis(dx, 0, along).reshape(b.shapes[0]),)


#: where between two neighbours a quantile lies, by method, from the place between them
_METHODS = {
    "linear": lambda part: part,
    "lower": lambda part: 0.0,
    "higher": lambda part: 1.0 if part > 0 else 0.0,
    "midpoint": lambda part: 0.5 if part > 0 else 0.0,
    "nearest": lambda part: 0.0 if part < 0.5 else 1.0 if part > 0.5 else None,
}


def neighbours(q: float, count: int, method: str) -> tuple[int, int, float]:
    """Two ranks and the share of the second."""
    if method not in _METHODS:
        raise ValueError(f"quantile: method: expected one of {', '.join(_METHODS)}, got {method!r}")
    if not 0 <= q <= 1:
        raise ValueError(f"quantile: q: expected a number from 0 to 1 (100 of percentile), got {q}")
    if count == 0:
        raise ValueError("quantile: expected one element or more, got none")
    place = q * (count - 1)
    low = min(math.floor(place), count - 1)
    part = _METHODS[method](place - low)
    if part is None:  # halves go to the even rank
        part = float(low % 2)
    return low, min(low + 1, count - 1), part


def _rows(x: np.ndarray, axis: Axes) -> np.ndarray:
    """x with the axes that go as the last one, joined."""
    axes = normalize_axes("axis", axis, x.ndim)
    kept = [d for d in range(x.ndim) if d not in axes]
    return x.transpose(*kept, *axes).reshape(*(x.shape[d] for d in kept), -1)


def _quantile(x: np.ndarray, q: Any, axis: Axes, method: str, keepdims: bool) -> np.ndarray:
    rows = np.sort(_rows(x, axis), -1)
    parts = []
    for each in np.atleast_1d(np.asarray(q, float)):
        low, high, share = neighbours(float(each), rows.shape[-1], method)
        if share in (0, 1):  # of which the other one, infinity perhaps, is no part
            part = rows[..., high if share else low]
        else:
            part = rows[..., low] * (1 - share) + rows[..., high] * share
        last = rows[..., -1]  # NaN, where there is one
        parts.append(np.where(np.isnan(last), last, part))
    shape = _reduced(x.shape, axis, keepdims)
    return parts[0].reshape(shape) if np.ndim(q) == 0 else np.stack([part.reshape(shape) for part in parts])


def _quantile_shape(extents: Shape, q: Any, axis: Axes, method: str, keepdims: bool) -> Shape:
    return (*np.shape(q), *_reduced(extents, axis, keepdims))


def _quantile_gradient(b: Backward, q: Any, axis: Axes, method: str, keepdims: bool) -> Any:
    x = b.x[0]
    rows = _rows(x, axis)
    order = np.argsort(rows, -1, kind="stable")
    spread = np.zeros(rows.shape, b.dy[0].dtype)
    dys = b.dy[0][None] if np.ndim(q) == 0 else b.dy[0]
    for each, dy in zip(np.atleast_1d(np.asarray(q, float)), dys, strict=True):
        low, high, share = neighbours(float(each), rows.shape[-1], method)
        dy = dy.reshape(rows.shape[:-1])
        spread[..., low] += sloped(1 - share, dy)
        spread[..., high] += sloped(share, dy)
    dx = np.zeros_like(spread)
    np.put_along_axis(dx, order, spread, -1)
    numbers = _rows(np.arange(x.size).reshape(x.shape), axis)
    result = np.empty(x.size, dx.dtype)
    result[numbers.reshape(-1)] = dx.reshape(-1)
    return (result.reshape(x.shape),)


def _nan(function: Any) -> Rule:
    """NumPy's function for data with gaps."""
    return Rule(
        lambda x, q, axis, method, keepdims: function(
            _counted(x), q, axis=_axes(axis), method=method, keepdims=keepdims
        ),
        None,
        _quantile_shape,
    )


def _median(x: np.ndarray, axis: Axes, keepdims: bool) -> np.ndarray:
    return _quantile(x, 0.5, axis, "linear", keepdims)


def _percentile(x: np.ndarray, q: Any, **static: Any) -> np.ndarray:
    return _quantile(x, np.asarray(q) / 100, **static)


ROWS: list[Row] = [
    (
        "all(x, axis=None, keepdims=False)",
        "Whether all elements over axes are true.",
        Rule(lambda x, axis, keepdims: np.all(x, axis=_axes(axis), keepdims=keepdims), no_gradient, _reduced, "bool"),
    ),
    (
        "any(x, axis=None, keepdims=False)",
        "Whether an element over axes is true.",
        Rule(lambda x, axis, keepdims: np.any(x, axis=_axes(axis), keepdims=keepdims), no_gradient, _reduced, "bool"),
    ),
    (
        "count_nonzero(x, axis=None)",
        "The number of elements over axes that are not zero.",
        Rule(lambda x, axis: np.count_nonzero(x, axis=_axes(axis)), no_gradient, _reduced, "int32"),
    ),
    (
        "prod(x, axis=None, keepdims=False, dtype=None)",
        "The product over axes.",
        Rule(_prod, _prod_gradient, _reduced, "count"),
    ),
    (
        "cumsum(x, axis=None, dtype=None)",
        "Sums of all elements up to each along an axis; of the flat array where it is None.",
        Rule(
            lambda x, axis, dtype: np.cumsum(_counted(x), axis, dtype),
            _cumsum_gradient,
            _cumulated,
            "numbers",
            reads_x=False,
        ),
    ),
    (
        "cumprod(x, axis=None, dtype=None)",
        "Products of all elements up to each along an axis; of the flat array where it is None.",
        Rule(lambda x, axis, dtype: np.cumprod(_counted(x), axis, dtype), _cumprod_gradient, _cumulated, "numbers"),
    ),
    (
        "quantile(x, q, axis=None, method='linear', keepdims=False)",
        "What a share q of the elements over axes is below; q may be a list, whose axis comes first.",
        Rule(_quantile, _quantile_gradient, _quantile_shape),
    ),
    (
        "percentile(x, q, axis=None, method='linear', keepdims=False)",
        "quantile with q in percent.",
        Rule(
            _percentile,
            lambda b, q, **static: _quantile_gradient(b, np.asarray(q) / 100, **static),
            _quantile_shape,
        ),
    ),
    (
        "median(x, axis=None, keepdims=False)",
        "The median over axes.",
        Rule(
            _median,
            lambda b, axis, keepdims: _quantile_gradient(b, 0.5, axis, "linear", keepdims),
            _reduced,
        ),
    ),
    (
        "nanquantile(x, q, axis=None, method='linear', keepdims=False)",
        "quantile of the elements that are no NaN.",
        _nan(np.nanquantile),
    ),
    (
        "nanpercentile(x, q, axis=None, method='linear', keepdims=False)",
        "percentile of the elements that are no NaN.",
        _nan(np.nanpercentile),
    ),
    (
        "nanmedian(x, axis=None, keepdims=False)",
        "The median of the elements that are no NaN.",
        Rule(lambda x, axis, keepdims: np.nanmedian(x, axis=_axes(axis), keepdims=keepdims), None, _reduced),
    ),
]

_FUNCTIONS = functions_of(__name__, ROWS)
globals().update(_FUNCTIONS)
__all__ = exported(_FUNCTIONS)
