"""Functions of arrays alone, whose result has a shape that values decide."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pydtconv.extents import check
from pydtconv.ops.functions.operands import as_operand, is_symbolic
from pydtconv.ops.functions.tables import elementwise

# fmt: off
__all__ = [
    "bincount", "histogram", "nonzero", "unique", "unravel_index",
]
# fmt: on


def _array(name: str, x: Any) -> np.ndarray:
    x = elementwise._FUNCTIONS["stop_gradient"](x)  # an array, of a variable too where no graph is traced
    if is_symbolic(x):
        raise TypeError(f"ops.{name}: expected an array, for its result's shape depends on values, got {x!r}")
    return np.asarray(x)


def _integers(name: str, x: Any) -> np.ndarray:
    array = _array(name, x)
    if array.dtype.kind not in "biu" and array.size:
        raise TypeError(f"ops.{name}: expected integers, got {array.dtype}")
    return array


def nonzero(x: Any) -> tuple[np.ndarray, ...]:
    """The indices of the elements of an array that are not zero, for each axis."""
    return tuple(index.astype("int32") for index in np.nonzero(_array("nonzero", x)))


def unravel_index(indices: Any, shape: Any) -> tuple[np.ndarray, ...]:
    """Indices into a flat array as indices for each axis of a shape."""
    check("unravel_index: shape", tuple(shape), least=0)
    places = _integers("unravel_index", indices)
    found = np.unravel_index(places, tuple(shape))
    whole = isinstance(indices, np.ndarray) and places.dtype.kind in "iu"
    return tuple(index.astype(places.dtype if whole else "int32") for index in found)


def bincount(x: Any, weights: Any = None, minlength: int = 0, sparse: bool = False) -> np.ndarray:
    """How often each integer is among the elements (of each row), or the sums of their weights."""
    if sparse:
        raise ValueError("bincount: sparse: expected False, got True")
    x = _integers("bincount", x)
    check("bincount: minlength", minlength, least=0)
    length = max(int(x.max()) + 1 if x.size else 0, minlength or 0)
    rows, heavy = x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), None
    if weights is not None:
        heavy = np.broadcast_to(np.asarray(weights), x.shape).reshape(rows.shape)
    counts = [np.bincount(row, None if heavy is None else heavy[i], length)[:length] for i, row in enumerate(rows)]
    kind = "int32" if weights is None else np.asarray(weights).dtype
    return np.asarray(counts).reshape(*x.shape[:-1], length).astype(kind)


def histogram(x: Any, bins: int = 10, range: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Counts of the elements in equal bins, and the edges of these."""
    x = as_operand(_array("histogram", x))
    check("histogram: bins", bins, least=1)
    if x.ndim != 1:
        raise ValueError(f"histogram: expected a vector, got shape {x.shape}")
    counts, edges = np.histogram(x, bins, range)
    return counts.astype(x.dtype), edges.astype(x.dtype)


def unique(
    x: Any,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The different elements of an array, in rising order; size: cut or filled up to so many."""
    parts = np.unique(_array("unique", x), True, True, True, axis=axis, equal_nan=False)
    values, index, inverse, counts = parts
    if size is not None:
        along = 0 if axis is None else axis
        more = size - values.shape[along]
        fill = values.take([0], along) if fill_value is None else np.full_like(values.take([0], along), fill_value)
        values = np.concatenate([values, *[fill] * more], along) if more > 0 else values.take(np.arange(size), along)
        index, counts = (
            np.resize(np.concatenate([part, [filler] * max(more, 0)]), size)
            for part, filler in ((index, index[0]), (counts, 0))  # the first one's place, as on JAX
        )
    wanted = zip((True, return_index, return_inverse, return_counts), (values, index, inverse, counts), strict=True)
    found = [part if i == 0 else part.astype("int32") for i, (want, part) in enumerate(wanted) if want]
    return found[0] if len(found) == 1 else tuple(found)
