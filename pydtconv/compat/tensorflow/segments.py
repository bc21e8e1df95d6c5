"""Functions of tensorflow that put elements in groups: by segments, partitions, bins, distances of sequences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pydtconv import ops
from pydtconv.compat.tensorflow.arrays import array, name_of
from pydtconv.compat.tensorflow.sparse import SparseTensor


def _sum(data: Any, ids: Any, count: int) -> Any:
    return ops.segment_sum(data, ids, count)


def _counts(data: Any, ids: Any, count: int) -> Any:
    """How many parts each segment has, at least 1: (count, 1, ...), as a mean divides by."""
    found = ops.maximum(ops.segment_sum(ops.ones_like(ids, dtype="float32"), ids, count), 1.0)
    return ops.cast(ops.reshape(found, (count, *[1] * (len(data.shape) - 1))), str(data.dtype))


def _mean(data: Any, ids: Any, count: int) -> Any:
    total, counts = _sum(data, ids, count), _counts(data, ids, count)
    return ops.floor_divide(total, counts) if np.dtype(str(data.dtype)).kind in "iu" else total / counts


#: what a segment is, by the name of the function: of data (n, ...), ids (n,), and how many segments there are
_KINDS: dict[str, Callable[[Any, Any, int], Any]] = {
    "sum": _sum,
    "mean": _mean,
    "prod": lambda data, ids, count: ops.segment_prod(data, ids, count),
    "max": lambda data, ids, count: ops.segment_max(data, ids, count),
    "min": lambda data, ids, count: ops.segment_min(data, ids, count),
    "sqrt_n": lambda data, ids, count: _sum(data, ids, count) / ops.sqrt(_counts(data, ids, count)),
}


def _flat(data: Any, ids: Any) -> tuple[Any, Any]:
    """Parts (n, ...) with one id each, of ids that have the first axes of data."""
    x, index = array(data), array(ids, "int32")
    if tuple(x.shape[: len(index.shape)]) != tuple(index.shape):
        raise ValueError(f"segments: ids: expected the first extents of {tuple(x.shape)}, got {tuple(index.shape)}")
    if len(index.shape) == 1:
        return x, index
    return ops.reshape(x, (-1, *x.shape[len(index.shape) :])), ops.reshape(index, (-1,))


def _empty(kind: str, dtype: str) -> Any:
    """The largest or smallest number of the dtype, which a segment without parts gives."""
    limits: Any = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    return limits.min if kind == "max" else limits.max


def _unsorted(kind: str) -> Callable[..., Any]:
    def unsorted(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
        """(num_segments, ...) of parts of data; those with a negative id are in none."""
        x, index = _flat(data, segment_ids)
        count = int(num_segments)
        kept = ops.where(index < 0, count, index)  # one more segment, which is left out
        found = _KINDS[kind](x, kept, count + 1)[:count]
        if kind in ("max", "min"):
            filled = ops.segment_sum(ops.ones_like(kept), kept, count + 1)[:count] > 0
            filled = ops.reshape(filled, (count, *[1] * (len(x.shape) - 1)))
            found = ops.where(filled, found, np.asarray(_empty(kind, str(x.dtype)), str(x.dtype)))
        return array(found)

    return unsorted


def _sorted(kind: str) -> Callable[..., Any]:
    def of_sorted(data: Any, segment_ids: Any, name: str | None = None) -> Any:
        """(last id + 1, ...) of parts of data, whose ids ascend; 0 where a segment has no parts, a product of 1."""
        x, index = array(data), np.asarray(segment_ids)
        if index.ndim != 1 or (np.diff(index) < 0).any() or (index < 0).any():
            raise ValueError(f"segment_{kind}: segment_ids: expected ascending numbers (n,) from 0, got {index}")
        count = int(index[-1]) + 1 if len(index) else 0
        found = _KINDS[kind](x, index.astype("int32"), count)
        if kind in ("max", "min"):
            filled = np.isin(np.arange(count), index).reshape(count, *[1] * (len(x.shape) - 1))
            found = ops.where(filled, found, ops.zeros_like(found))
        return array(found)

    return of_sorted


def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list[Any]:
    """The parts of data by their numbers."""
    x, index = _flat(data, np.asarray(partitions))
    places = [np.flatnonzero(np.asarray(index) == i).astype("int32") for i in range(num_partitions)]
    return [array(ops.take(x, each, axis=0)) for each in places]


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Any:
    """One array of parts of several at their places; of parts for one place the last one stays."""
    places = [np.asarray(each) for each in indices]
    flat = np.concatenate([each.reshape(-1) for each in places])
    parts = [array(x) for x in data]
    last = dict(zip(flat.tolist(), range(len(flat)), strict=True))
    rows = ops.concatenate([ops.reshape(x, (-1, *x.shape[p.ndim :])) for x, p in zip(parts, places, strict=True)])
    count = int(flat.max()) + 1 if len(flat) else 0
    order = np.asarray([last.get(i, -1) for i in range(count)], "int32")
    found = ops.take(rows, np.maximum(order, 0), axis=0)
    kept = (order >= 0).reshape(count, *[1] * (len(found.shape) - 1))
    return array(found if kept.all() else ops.where(kept, found, ops.zeros_like(found)))


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: int = 100, dtype: Any = "int32", name: str | None = None
) -> Any:
    """The bin of each value, of bins of one width; values outside are in the first or last one."""
    low, high = (float(each) for each in value_range)
    if not low < high:
        raise ValueError(f"value_range: expected two ascending numbers, got {low, high}")
    scaled = np.floor((np.asarray(values, "float64") - low) / (high - low) * int(nbins))
    return array(np.clip(scaled, 0, int(nbins) - 1), name_of(dtype))


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: int = 100, dtype: Any = "int32", name: str | None = None
) -> Any:
    """How many values are in each bin."""
    bins = np.asarray(histogram_fixed_width_bins(values, value_range, nbins)).reshape(-1)
    return array(np.bincount(bins, minlength=int(nbins)), name_of(dtype))


class Unique(NamedTuple):
    """Values, and for each element the place of its value."""

    y: Any
    idx: Any


class UniqueWithCounts(NamedTuple):
    """As `Unique`, and how often each value is there."""

    y: Any
    idx: Any
    count: Any


def unique(x: Any, out_idx: Any = "int32", name: str | None = None) -> Unique:
    """The values of an array in the order of their first places, and for each element the place of its value."""
    values, first, places = np.unique(np.asarray(array(x)), return_index=True, return_inverse=True)
    order = np.argsort(first)
    return Unique(array(values[order]), array(np.argsort(order)[places], out_idx))


def unique_with_counts(x: Any, out_idx: Any = "int32", name: str | None = None) -> UniqueWithCounts:
    """As `unique`, and how often each value is there."""
    values, places = unique(x, out_idx)
    counts = np.bincount(np.asarray(places), minlength=len(values))
    return UniqueWithCounts(values, places, array(counts, name_of(out_idx)))


def edit_distance(hypothesis: SparseTensor, truth: SparseTensor, normalize: bool = True, name: Any = None) -> Any:
    """Levenshtein's distances of sequences along the last axis, divided by the length of truth's."""
    shape = tuple(np.maximum(*(np.asarray(x.dense_shape) for x in (hypothesis, truth))))[:-1]
    given, wanted = _sequences(hypothesis), _sequences(truth)
    found = np.zeros(shape, "float32")
    for place in np.ndindex(*shape):
        a, b = given.get(place, []), wanted.get(place, [])
        distance: float = _levenshtein(a, b)
        found[place] = (distance / len(b) if b else math.inf if a else 0) if normalize else distance
    return array(found)


def _sequences(x: SparseTensor) -> dict[tuple[int, ...], list[Any]]:
    found: dict[tuple[int, ...], list[Any]] = {}
    for place, value in zip(np.asarray(x.indices).tolist(), np.asarray(x.values).tolist(), strict=True):
        found.setdefault(tuple(place[:-1]), []).append(value)
    return found


def _levenshtein(a: list[Any], b: list[Any]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def segments() -> dict[str, Callable[..., Any]]:
    """The functions of `tf.math` of segments."""
    found = {f"segment_{kind}": _sorted(kind) for kind in _KINDS if kind != "sqrt_n"}
    return found | {f"unsorted_segment_{kind}": _unsorted(kind) for kind in _KINDS}


def table() -> dict[str, Callable[..., Any]]:
    """The other functions by name."""
    own = (
        dynamic_partition, dynamic_stitch, histogram_fixed_width_bins, histogram_fixed_width, unique,
        unique_with_counts, edit_distance, SparseTensor,
    )  # fmt: skip
    return {each.__name__: each for each in own}
