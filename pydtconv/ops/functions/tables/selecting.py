"""Functions whose places depend on values: sorting, taking by index, scattering, segments; and indices themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pydtconv.ops.functions.tables.function_of_row import Row, functions_of
from pydtconv.ops.parts import exported
from pydtconv.ops.table_op import Backward, Rule, no_gradient

Shape = tuple[int, ...]


def _same(extents: Shape, *more: Shape, **static: Any) -> Shape:
    return extents


def _without(extents: Shape, axis: int | None, keepdims: bool = False) -> Shape:
    if axis is None:
        return (1,) * len(extents) if keepdims else ()
    axis %= len(extents)
    return (*extents[:axis], *((1,) if keepdims else ()), *extents[axis + 1 :])


def _flat(x: np.ndarray, axis: int | None) -> tuple[np.ndarray, int]:
    return (x.reshape(-1), 0) if axis is None else (x, axis)


def _sort_gradient(b: Backward, axis: int | None = -1) -> Any:
    x, axis = _flat(b.x[0], axis)
    dx = np.zeros(x.shape, b.dy[0].dtype)
    np.put_along_axis(dx, np.argsort(x, axis=axis, kind="stable"), b.dy[0].reshape(x.shape), axis)
    return (dx.reshape(b.shapes[0]),)


def _sorted(extents: Shape, axis: int | None) -> Shape:
    return (math.prod(extents),) if axis is None else extents


def _partitioned(extents: Shape, kth: Any, axis: int | None) -> Shape:
    shape = _sorted(extents, axis)
    extent = shape[-1 if axis is None else axis]
    if any(not -extent <= k < extent for k in np.ravel(kth)):
        raise ValueError(f"kth: expected {-extent} to {extent - 1}, got {kth}")
    return shape


def _binned(extents: Shape, bins: Any) -> Shape:
    if np.ndim(bins) != 1:
        raise ValueError(f"bins: expected a vector, got shape {np.shape(bins)}")
    return extents


def _top_k(x: np.ndarray, k: int, sorted: bool) -> tuple[np.ndarray, np.ndarray]:
    _top_k_shape(x.shape, k, sorted)
    order = x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., :k]  # NaN is the largest
    return np.take_along_axis(x, order, -1), order


def _top_k_shape(extents: Shape, k: int, sorted: bool) -> list[Shape]:
    if not extents or not 0 <= k <= extents[-1]:
        raise ValueError(f"top_k: k: expected 0 to {extents[-1] if extents else 0}, the last extent, got {k}")
    return [(*extents[:-1], k), (*extents[:-1], k)]


def _top_k_gradient(b: Backward, k: int, sorted: bool) -> Any:
    dx = np.zeros(b.shapes[0], b.x[0].dtype)
    if b.dy[0] is not None:
        np.put_along_axis(dx, _top_k(b.x[0], k, sorted)[1], b.dy[0], -1)
    return (dx,)


def _take(x: np.ndarray, indices: np.ndarray, axis: int | None) -> np.ndarray:
    return np.take(x, indices.astype(np.int64), axis)


def _take_gradient(b: Backward, axis: int | None) -> Any:
    shape, indices = b.shapes[0], b.x[1].astype(np.int64)
    x, axis = _flat(np.empty(shape, np.int8), axis)
    axis %= x.ndim
    dx = np.zeros(x.shape, b.dy[0].dtype)
    dy = b.dy[0].reshape(*x.shape[:axis], -1, *x.shape[axis + 1 :])
    np.add.at(np.moveaxis(dx, axis, 0), indices.reshape(-1), np.moveaxis(dy, axis, 0))
    return dx.reshape(shape), None


def _take_shape(extents: Shape, indices: Shape, axis: int | None) -> Shape:
    if axis is None:
        return indices
    axis %= len(extents)
    return (*extents[:axis], *indices, *extents[axis + 1 :])


def _along(x: np.ndarray, indices: np.ndarray, axis: int | None) -> np.ndarray:
    if axis is None:
        return np.take_along_axis(x, indices.astype(np.int64), None)
    rest = np.broadcast_shapes(_without(x.shape, axis, True), _without(indices.shape, axis, True))
    wide = [list(rest), list(rest)]
    wide[0][axis], wide[1][axis] = x.shape[axis], indices.shape[axis]
    whole, places = np.broadcast_to(x, wide[0]), np.broadcast_to(indices, wide[1])
    return np.take_along_axis(whole, places.astype(np.int64), axis)


def _along_gradient(b: Backward, axis: int | None) -> Any:
    numbers = np.arange(math.prod(b.shapes[0])).reshape(b.shapes[0])
    places = _along(numbers, b.x[1], axis)
    return np.bincount(places.reshape(-1), b.dy[0].reshape(-1), numbers.size).reshape(b.shapes[0]), None


def _along_shape(extents: Shape, indices: Shape, axis: int | None) -> Shape:
    if axis is None:
        return indices
    shape = list(np.broadcast_shapes(_without(extents, axis, True), _without(indices, axis, True)))
    shape[axis] = indices[axis]
    return tuple(shape)


def _scatter(indices: np.ndarray, values: np.ndarray, shape: Shape) -> np.ndarray:
    y = np.zeros(shape, values.dtype)
    np.add.at(y, tuple(np.moveaxis(indices.astype(np.int64), -1, 0)), values)
    return y


def _scatter_gradient(b: Backward, shape: Shape) -> Any:
    return None, b.dy[0][tuple(np.moveaxis(b.x[0].astype(np.int64), -1, 0))]


_AT = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}


def _update(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, reduction: str | None) -> np.ndarray:
    y, at = x.copy(), tuple(np.moveaxis(indices.astype(np.int64), -1, 0))
    if reduction is None:
        y[at] = updates
    elif reduction in _AT:
        _AT[reduction].at(y, at, updates)
    else:
        raise ValueError(f"scatter_update: reduction: expected None, {', '.join(_AT)}, got {reduction!r}")
    return y


def _update_gradient(b: Backward, reduction: str | None) -> Any:
    at, dx = tuple(np.moveaxis(b.x[1].astype(np.int64), -1, 0)), b.dy[0].copy()
    if reduction not in (None, "add"):
        raise NotImplementedError(f"ops.scatter_update with reduction={reduction!r}: has no gradient here")
    if reduction is None:
        dx[at] = 0
    return dx, None, b.dy[0][at]


def _window(start: Any, shape: Any) -> tuple[slice, ...]:
    return tuple(slice(int(a), int(a) + int(n)) for a, n in zip(start, shape, strict=True))


def _slice(x: np.ndarray, start: np.ndarray, shape: Shape) -> np.ndarray:
    _sliced(x.shape, start.shape, shape)
    if any(not 0 <= int(a) <= extent - n for a, extent, n in zip(start, x.shape, shape, strict=True)):
        raise ValueError(f"slice: expected a window inside of {x.shape}, got {shape} at {tuple(map(int, start))}")
    return x[_window(start, shape)]


def _sliced(extents: Shape, start: Shape, shape: Shape) -> Shape:
    if tuple(start) != (len(extents),) or len(shape) != len(extents):
        raise ValueError(f"expected an index and an extent for each of {len(extents)} axes, got shape={shape}")
    if min(shape) < 1 or any(n > extent for n, extent in zip(shape, extents, strict=True)):
        raise ValueError(f"shape: expected extents from 1 to those of the input, got {shape}: -1 depends on values")
    return tuple(shape)


def _slice_gradient(b: Backward, shape: Shape) -> Any:
    dx = np.zeros(b.shapes[0], b.dy[0].dtype)
    dx[_window(b.x[1], shape)] = b.dy[0]
    return dx, None


def _slice_update(x: np.ndarray, start: np.ndarray, updates: np.ndarray) -> np.ndarray:
    y = x.copy()
    y[_window(start, updates.shape)] = updates
    return y


def _slice_update_gradient(b: Backward) -> Any:
    window, dx = _window(b.x[1], b.shapes[2]), b.dy[0].copy()
    dx[window] = 0
    return dx, None, b.dy[0][window]


def _segment(ufunc: Any, start: Any) -> Any:
    def forward(data: np.ndarray, ids: np.ndarray, num_segments: int | None, sorted: bool) -> np.ndarray:
        if ids.ndim != 1 or data.ndim < 1 or len(ids) != len(data):
            raise ValueError(f"segment_ids: expected one for each row of {data.shape}, got shape {ids.shape}")
        count = int(ids.max(initial=-1)) + 1 if num_segments is None else num_segments
        first = start(data.dtype) if callable(start) else start
        y = np.full((count, *data.shape[1:]), first, data.dtype)
        inside = (ids >= 0) & (ids < count)
        ufunc.at(y, ids[inside].astype(np.int64), data[inside])
        return y

    return forward


def _segment_shape(data: Shape, ids: Shape, num_segments: int | None, sorted: bool) -> Shape:
    if num_segments is None:
        raise ValueError("expected num_segments, which a graph has to know")
    return (num_segments, *data[1:])


def _inside(ids: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows belong to a segment of y, as numbers of rows, and the segments of these."""
    rows = np.flatnonzero((ids >= 0) & (ids < len(y)))
    return rows, ids[rows].astype(np.int64)


def _segment_sum_gradient(b: Backward, **static: Any) -> Any:
    rows, ids = _inside(b.x[1], b.dy[0])
    dx = np.zeros(b.shapes[0], b.dy[0].dtype)
    dx[rows] = b.dy[0][ids]
    return dx, None


def _segment_extremum_gradient(b: Backward, **static: Any) -> Any:
    rows, ids = _inside(b.x[1], b.dy[0])
    mask = b.x[0][rows] == b.y[0][ids]
    share = np.zeros(b.y[0].shape, b.dy[0].dtype)
    np.add.at(share, ids, mask)
    dx = np.zeros(b.shapes[0], b.dy[0].dtype)
    dx[rows] = np.where(mask, (b.dy[0] / np.where(share == 0, 1, share))[ids], 0)
    return dx, None


def _least(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else dtype.kind != "b" and np.iinfo(dtype).min


def _most(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else dtype.kind == "b" or np.iinfo(dtype).max


def _argmin(x: np.ndarray, axis: int | None, keepdims: bool) -> Any:
    return np.argmin(x, axis=axis, keepdims=keepdims)


def _nan_place(find: Any, worst: float, x: np.ndarray, axis: int | None, keepdims: bool) -> Any:
    """The index of an extremum; -1 where all are NaN."""
    gaps = np.isnan(x)
    place = find(np.where(gaps, worst, x), axis=axis, keepdims=keepdims)
    return np.where(gaps.all(axis=axis, keepdims=keepdims), -1, place)


def _one_hot(x: np.ndarray, num_classes: int, axis: int, dtype: str | None, sparse: bool) -> np.ndarray:
    hot = (x[..., None] == np.arange(num_classes)).astype(dtype or "float32")
    return hot if axis == -1 else np.moveaxis(hot, -1, axis)


def _one_hot_shape(extents: Shape, num_classes: int, axis: int, dtype: str | None, sparse: bool) -> Shape:
    shape = list(extents)
    shape.insert(len(shape) + 1 + axis if axis < 0 else axis, num_classes)
    return tuple(shape)


def _in_top_k(targets: np.ndarray, predictions: np.ndarray, k: int) -> np.ndarray:
    score = np.take_along_axis(predictions, targets.astype(np.int64)[..., None], -1)
    return np.isfinite(score[..., 0]) & ((predictions > score).sum(-1) < k)


ROWS: list[Row] = [
    ("sort(x, axis=-1)", "x in rising order along an axis.", Rule(np.sort, _sort_gradient, _sorted, "promote")),
    (
        "argsort(x, axis=-1)",
        "The indices that sort x along an axis.",
        Rule(
            lambda x, axis: np.argsort(x, axis=axis, kind="stable"),
            no_gradient,
            _sorted,
            "int32",
        ),
    ),
    (
        "argpartition(x, kth, axis=-1)",
        "Indices such that element kth is where sorting puts it.",
        Rule(np.argpartition, no_gradient, _partitioned, "int32"),
    ),
    (
        "top_k(x, k, sorted=True)",
        "The k largest along the last axis, and their indices.",
        Rule(
            _top_k,
            _top_k_gradient,
            _top_k_shape,
            ("promote", "int32"),
        ),
    ),
    (
        "take(x, indices, axis=None)",
        "Elements along an axis by their indices.",
        Rule(_take, _take_gradient, _take_shape, "first", linear=(0,)),
    ),
    (
        "take_along_axis(x, indices, axis=None)",
        "Elements by an index for each row along an axis.",
        Rule(_along, _along_gradient, _along_shape, "first", linear=(0,)),
    ),
    (
        "scatter(indices, values, shape)",
        "Zeros of a shape with values added at indices.",
        Rule(_scatter, _scatter_gradient, lambda indices, values, shape: tuple(shape), "behind the first", linear=(1,)),
    ),
    (
        "scatter_update(inputs, indices, updates, reduction=None)",
        'inputs with updates at indices; reduction: None (in their place), "add", "max", "min" or "mul".',
        Rule(_update, _update_gradient, _same, "first", linear=(0, 2)),
    ),
    (
        "_slice(inputs, start_indices, shape)",
        "The window of a shape that begins at start_indices.",
        Rule(_slice, _slice_gradient, _sliced, "first"),
    ),
    (
        "slice_update(inputs, start_indices, updates)",
        "inputs with updates in the window that begins at start_indices.",
        Rule(_slice_update, _slice_update_gradient, _same, "first", linear=(0, 2)),
    ),
    (
        "segment_sum(data, segment_ids, num_segments=None, sorted=False)",
        "Sums of the rows of each segment.",
        Rule(_segment(np.add, 0), _segment_sum_gradient, _segment_shape, "first", linear=(0,)),
    ),
    (
        "segment_max(data, segment_ids, num_segments=None, sorted=False)",
        "The largest of the rows of each segment.",
        Rule(_segment(np.maximum, _least), _segment_extremum_gradient, _segment_shape, "first", reads_y=True),
    ),
    (
        "segment_min(data, segment_ids, num_segments=None, sorted=False)",
        "The smallest of the rows of each segment.",
        Rule(_segment(np.minimum, _most), _segment_extremum_gradient, _segment_shape, "first", reads_y=True),
    ),
    (
        "segment_prod(data, segment_ids, num_segments=None, sorted=False)",
        "Products of the rows of each segment.",
        Rule(_segment(np.multiply, 1), None, _segment_shape, "first"),
    ),
    (
        "argmin(x, axis=None, keepdims=False)",
        "The index of the smallest element; over all elements where axis is None.",
        Rule(_argmin, no_gradient, _without, "int32"),
    ),
    (
        "nanargmax(x, axis=None, keepdims=False)",
        "The index of the largest element that is no NaN.",
        Rule(
            lambda x, axis, keepdims: _nan_place(np.argmax, -np.inf, x, axis, keepdims),
            no_gradient,
            _without,
            "int32",
        ),
    ),
    (
        "nanargmin(x, axis=None, keepdims=False)",
        "The index of the smallest element that is no NaN.",
        Rule(
            lambda x, axis, keepdims: _nan_place(np.argmin, np.inf, x, axis, keepdims),
            no_gradient,
            _without,
            "int32",
        ),
    ),
    (
        "one_hot(x, num_classes, axis=-1, dtype=None, sparse=False)",
        "1 at each index along a new axis, 0 elsewhere; float32 by default.",
        Rule(_one_hot, no_gradient, _one_hot_shape, "float32"),
    ),
    (
        "searchsorted(sorted_sequence, values, side='left')",
        "Where values belong in a sorted vector.",
        Rule(np.searchsorted, no_gradient, lambda sequence, values, side: values, "int32"),
    ),
    (
        "digitize(x, bins)",
        "The index of the bin of each element; bins are rising.",
        Rule(lambda x, bins: np.digitize(x, np.asarray(bins)), no_gradient, _binned, "int32"),
    ),
    (
        "isin(x1, x2, assume_unique=False, invert=False)",
        "Whether each element of x1 is among those of x2.",
        Rule(np.isin, no_gradient, _same, "bool"),
    ),
    (
        "in_top_k(targets, predictions, k)",
        "Whether the score of the target is among the k best.",
        Rule(_in_top_k, no_gradient, lambda targets, predictions, k: targets, "bool"),
    ),
]

_TENSORS = {
    **dict.fromkeys(("_slice", "take", "take_along_axis", "scatter", "searchsorted", "isin", "in_top_k"), 2),
    **dict.fromkeys(("segment_sum", "segment_max", "segment_min", "segment_prod"), 2),
    **dict.fromkeys(("scatter_update", "slice_update"), 3),
}
_NARROW = "sort top_k take take_along_axis scatter_update slice_update segment_max segment_min"
_FUNCTIONS = functions_of(__name__, ROWS, _TENSORS, _NARROW)
globals().update(_FUNCTIONS)
__all__ = exported(
    [name for name in _FUNCTIONS if not name.startswith("_")],
    nn="one_hot",
    math="top_k segment_sum segment_max segment_min segment_prod in_top_k",
    core="scatter scatter_update slice_update",
)
