"""Functions that count: where values decide the result's shape, they are for arrays alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pydtconv.dtypes import name_of
from pydtconv.extents import check
from pydtconv.hooks import as_result
from pydtconv.ops.checks import check_axis
from pydtconv.ops.functions.operands import as_float, is_symbolic
from pydtconv.ops.functions.tables import elementwise
from pydtconv.ops.functions.tables.function_of_row import apply, frozen
from pydtconv.ops.parts import exported
from pydtconv.ops.table_op import RULES, Rule, TableOp, no_gradient

Shape = tuple[int, ...]

__all__ = exported(numpy="bincount histogram nonzero unique unravel_index")


def _array(name: str, x: Any) -> np.ndarray:
    x = _still(x)
    if is_symbolic(x):
        raise TypeError(f"ops.{name}: expected an array, for its result's shape depends on values, got {x!r}")
    return np.asarray(x)


def _still(x: Any) -> Any:
    """x without a gradient: an array, of a variable too where no graph is traced."""
    return elementwise._FUNCTIONS["stop_gradient"](x)


def _integers(name: str, x: Any) -> np.ndarray:
    array = _array(name, x)
    if array.dtype.kind not in "biu" and array.size:
        raise TypeError(f"ops.{name}: expected integers, got {array.dtype}")
    return array


def nonzero(x: Any) -> tuple[np.ndarray, ...]:
    """The indices of the elements of an array that are not zero, for each axis."""
    return tuple(as_result(index.astype("int32")) for index in np.nonzero(_array("nonzero", x)))


def _unravelled(places: np.ndarray, shape: tuple[int, ...]) -> Any:
    found = np.unravel_index(places, shape)
    return found if len(found) > 1 else found[0]


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Indices into a flat array as indices for each axis of a shape."""
    check("unravel_index: shape", tuple(shape), least=0)
    if is_symbolic(places := _still(indices)):
        if not name_of(places.dtype).startswith(("int", "uint")):
            raise TypeError(f"ops.unravel_index: expected integers, got {name_of(places.dtype)}")
        found = TableOp("unravel_index", (("shape", tuple(shape)),))(places)
        return found if isinstance(found, tuple) else (found,)
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
    return as_result(np.asarray(counts).reshape(*x.shape[:-1], length).astype(kind))


def histogram(x: Any, bins: int = 10, range: Any = None) -> tuple[Any, Any]:
    """Counts of the elements in equal bins, and the edges of these."""
    check("histogram: bins", bins, least=1)
    if range is not None:
        ends = np.asarray(range)
        if ends.shape != (2,) or ends.dtype.kind not in "iuf" or not np.isfinite(ends).all() or ends[0] > ends[1]:
            raise ValueError(f"histogram: range: expected two rising numbers, got {range!r}")
    x = as_float(_still(x))
    if len(x.shape) != 1:
        raise ValueError(f"histogram: expected a vector, got shape {tuple(x.shape)}")
    return apply("histogram", [x], {"bins": bins, "range": range})


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
    """The different elements, in rising order; size: cut or filled up to so many, which symbolic tensors need."""
    x, settings = _still(x), {"axis": axis, "size": size, "fill_value": fill_value}
    if is_symbolic(x) and size is not None:
        check("unique: size", size, least=1)
        parts = TableOp("unique", tuple((key, frozen(value)) for key, value in settings.items()))(x)
    else:
        parts = _unique(_array("unique", x), **settings)
    wanted = zip((True, return_index, return_inverse, return_counts), parts, strict=True)
    found = [part for want, part in wanted if want]
    found[1:] = [part if is_symbolic(part) else part.astype("int32") for part in found[1:]]
    found = [part if is_symbolic(part) else as_result(part) for part in found]
    return found[0] if len(found) == 1 else tuple(found)


def _unique(x: np.ndarray, axis: int | None, size: int | None, fill_value: Any) -> tuple[np.ndarray, ...]:
    """Values, the places of the first ones, the number of each element's value, and counts."""
    values, index, inverse, counts = np.unique(x, True, True, True, axis=axis, equal_nan=False)
    if size is not None:
        along = 0 if axis is None else axis
        more = size - values.shape[along]
        fill = values.take([0], along) if fill_value is None else np.full_like(values.take([0], along), fill_value)
        values = np.concatenate([values, *[fill] * more], along) if more > 0 else values.take(np.arange(size), along)
        index, counts = (
            np.resize(np.concatenate([part, [filler] * max(more, 0)]), size)
            for part, filler in ((index, index[0]), (counts, 0))  # the first one's place, as on JAX
        )
    return values, index, inverse.reshape(x.shape if axis is None else -1), counts


def _unique_shape(extents: Shape, axis: int | None, size: int, fill_value: Any) -> list[Shape]:
    if axis is None:
        return [(size,), (size,), extents, (size,)]
    axis = check_axis("unique", axis, len(extents))
    return [(*extents[:axis], size, *extents[axis + 1 :]), (size,), (extents[axis],), (size,)]


RULES["unique"] = Rule(_unique, no_gradient, _unique_shape, ("promote", "int32", "int32", "int32"))
RULES["unravel_index"] = Rule(_unravelled, no_gradient, lambda extents, shape: [extents] * len(shape), "first")
RULES["histogram"] = Rule(
    lambda x, bins, range: np.histogram(x, bins, range),
    no_gradient,
    lambda extents, bins, range: [(bins,), (bins + 1,)],
)
