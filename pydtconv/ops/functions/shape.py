"""Other shapes, orders, pieces and dtypes of the same elements."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import config, dtypes
from pydtconv.extents import check
from pydtconv.hooks import as_result
from pydtconv.ops.checks import check_axis, normalize_axes
from pydtconv.ops.functions.moving import moved
from pydtconv.ops.functions.operands import as_tensor, is_symbolic, is_watched, of_one_kind
from pydtconv.ops.parts import exported
from pydtconv.ops.reduction import Axes
from pydtconv.ops.resize import Pad
from pydtconv.ops.shape import Cast, Concatenate, Reshape, Slice, Transpose
from pydtconv.ops.table_op import TableOp
from pydtconv.support.strings import are_strings

__all__ = exported(
    numpy="concatenate expand_dims get_item moveaxis pad ravel reshape split squeeze stack swapaxes transpose",
    core="cast",
    own="slice_along",
)


def reshape(x: Any, newshape: Any) -> Any:
    """The same elements in another shape; one extent may be -1."""
    if any(map(is_symbolic, (newshape, *(newshape if isinstance(newshape, (list, tuple)) else ())))):
        raise TypeError(f"ops.reshape: newshape: expected numbers, for a graph has to know them, got {newshape!r}")
    return Reshape((newshape,) if isinstance(newshape, int) else tuple(newshape))(as_tensor(x))


def ravel(x: Any) -> Any:
    """The elements as a vector."""
    return reshape(x, (-1,))


def expand_dims(x: Any, axis: int | Sequence[int]) -> Any:
    """x with new axes of extent 1 at `axis`, one or several, of the result."""
    x = as_tensor(x)
    axes = tuple(np.atleast_1d(axis).tolist())
    rank = len(x.shape) + len(axes)
    new = normalize_axes("expand_dims", axes, rank)
    extents = iter(x.shape)
    return reshape(x, tuple(1 if d in new else next(extents) for d in range(rank)))


def squeeze(x: Any, axis: Axes = None) -> Any:
    """x without axes of extent 1: the given ones, or all."""
    x = as_tensor(x)
    axes = normalize_axes("squeeze", axis, len(x.shape)) if axis is not None else ()
    if axis is not None and any(x.shape[a] != 1 for a in axes):
        raise ValueError(f"squeeze: expected extents of 1 along {axis}, got shape {tuple(x.shape)}")
    return reshape(x, tuple(n for d, n in enumerate(x.shape) if not (d in axes or (axis is None and n == 1))))


def transpose(x: Any, axes: Sequence[int] | None = None) -> Any:
    """The axes in another order; None reverses them."""
    return moved(Transpose(None if axes is None else tuple(axes)), as_tensor(x))


def moveaxis(x: Any, source: Axes, destination: Axes) -> Any:
    """Axes moved to other positions, the rest in order."""
    x = as_tensor(x)
    rank = len(x.shape)
    from_, to = (
        [check_axis("moveaxis", a, rank) for a in ([axes] if isinstance(axes, int) else axes or ())]
        for axes in (source, destination)
    )
    if len(set(from_)) < len(from_) or len(set(to)) < len(to) or len(from_) != len(to):
        raise ValueError(f"moveaxis: expected as many places as axes, each once, got {source} and {destination}")
    order = [a for a in range(rank) if a not in from_]
    for place, axis in sorted(zip(to, from_, strict=True)):
        order.insert(place, axis)
    return transpose(x, order)


def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """Two axes exchanged."""
    x = as_tensor(x)
    order = list(range(len(x.shape)))
    axis1, axis2 = (check_axis("swapaxes", axis, len(order)) for axis in (axis1, axis2))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return transpose(x, order)


def concatenate(xs: Sequence[Any], axis: int = 0) -> Any:
    """Tensors one behind the other along an axis."""
    xs = of_one_kind(*xs)
    if not xs:
        raise ValueError("concatenate: expected one tensor or more, got none")
    return as_result(xs[0]) if len(xs) == 1 else moved(Concatenate(axis), *xs)


def stack(x: Sequence[Any], axis: int = 0) -> Any:
    """Tensors along a new axis."""
    xs = of_one_kind(*x)
    if not xs:
        raise ValueError("stack: expected one tensor or more, got none")
    return concatenate([expand_dims(value, axis) for value in xs], axis)


def slice_along(x: Any, axis: int, start: int, stop: int | None) -> Any:
    """x[start:stop] along one axis."""
    x = as_tensor(x)
    rank = len(x.shape)
    (axis,) = normalize_axes("slice", axis, rank)
    starts = tuple(start if d == axis else 0 for d in range(rank))
    return moved(Slice(starts, tuple(stop if d == axis else None for d in range(rank))), x)


def get_item(x: Any, key: Any) -> Any:
    """x[key] as NumPy reads it, for integers, slices, `...`, None and lists of indices.

    Raises TypeError for other keys, IndexError for what lies outside x, and ValueError for a part of an axis whose
    extent is not known.
    """
    x = as_tensor(x)
    if any(_is_general(part) for part in _parts(key)):
        return TableOp("_index", (("key", tuple(_plain(part) for part in _parts(key))),))(x)
    starts, stops, shape = [], [], []
    extents = enumerate(x.shape)
    for part in _complete(key, len(x.shape)):
        if part is None:
            shape.append(1)
            continue
        axis, extent = next(extents)
        start, stop = _bounds(part, axis, extent)
        starts.append(start)
        stops.append(stop)
        if isinstance(part, slice):
            shape.append(-1 if extent is None else max((extent if stop is None else stop) - start, 0))
    if any(starts) or any(stop is not None for stop in stops):
        x = moved(Slice(tuple(starts), tuple(stops)), x)
    return as_result(x) if len(shape) == len(x.shape) and None not in _parts(key) else reshape(x, shape)


def _plain(part: Any) -> Any:
    """A part of a key as a setting of an operator; the table of functions reads it (tables/rearranging.py)."""
    if isinstance(part, slice):
        return ("slice", part.start, part.stop, part.step)
    return ("array", *np.asarray(part).tolist()) if isinstance(part, (list, np.ndarray)) else part


def _is_general(part: Any) -> bool:
    """Whether a part of a key needs more than a window: a step, or a list of indices."""
    if isinstance(part, slice):
        return part.step not in (None, 1)
    return isinstance(part, (list, np.ndarray)) and np.asarray(part).dtype.kind in "iub" and np.ndim(part) > 0


def _parts(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _as_index(part: Any) -> Any:
    """An integer of what knows its value as one; anything else as it is."""
    known = isinstance(part, (int, np.integer, slice, list)) or (isinstance(part, np.ndarray) and part.ndim > 0)
    return part if known or not hasattr(part, "__index__") else operator.index(part)


def _complete(key: Any, rank: int) -> tuple[Any, ...]:
    """The parts of a key, with whole slices where it leaves axes out."""
    parts = tuple(map(_as_index, _parts(key)))
    for part in parts:
        known = isinstance(part, (int, np.integer, slice)) and not isinstance(part, bool)
        if not known and part is not None and part is not Ellipsis:
            raise TypeError(f"index: expected integers, slices, ... or None, got {part!r}")
    missing = rank - len([part for part in parts if part is not None and part is not Ellipsis])
    if missing < 0 or parts.count(Ellipsis) > 1:
        raise IndexError(f"index: expected at most {rank} parts and one ..., got {key!r}")
    at = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    return (*parts[:at], *[slice(None)] * missing, *parts[at + 1 :])


def _bounds(part: Any, axis: int, extent: int | None) -> tuple[int, int | None]:
    """First element and end, None where that is the axis's, of one part of a key."""
    if isinstance(part, slice) and part.step not in (None, 1):
        raise TypeError(f"index: expected slices of step 1, got step {part.step} along axis {axis}")
    if extent is None:
        if not isinstance(part, slice) or part.start not in (None, 0) or part.stop is not None:
            raise ValueError(f"index: expected all of axis {axis}, whose extent is not known, got {part!r}")
        return 0, None
    if isinstance(part, slice):
        start, stop, _ = part.indices(extent)
        return start, None if stop == extent else stop
    if not -extent <= part < extent:
        raise IndexError(f"index: expected {-extent} to {extent - 1} along axis {axis}, got {part}")
    start = int(part) % extent
    return start, start + 1


def split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Any]:
    """x cut along an axis into equal sections, or at the given indices."""
    x = as_tensor(x)
    extent = x.shape[check_axis("split", axis, len(x.shape))]
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        if sections < 1 or extent % sections:
            raise ValueError(f"split: expected a divisor of {extent} as the number of sections, got {sections}")
        each = extent // sections
        return [slice_along(x, axis, i * each, (i + 1) * each) for i in range(sections)]
    cuts = list(indices_or_sections)
    return [slice_along(x, axis, a, b) for a, b in zip([0, *cuts], [*cuts, extent], strict=True)]


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: float | None = None) -> Any:
    """x with (before, after) elements per axis: constant_values (0), or mirrored ("reflect", "symmetric")."""
    x = as_tensor(x)
    check("pad: pad_width", pad_width)
    if constant_values is not None and mode != "constant":
        raise ValueError(f"pad: constant_values: expected None for mode={mode!r}, got {constant_values}")
    widths = np.broadcast_to(np.asarray(pad_width, int), (len(x.shape), 2))
    if not widths.any():
        return as_result(x)
    pairs = tuple((int(a), int(b)) for a, b in widths)
    return moved(Pad(pairs, mode, float(constant_values or 0)), x)


def cast(x: Any, dtype: str) -> Any:
    """x in another dtype; strings stay strings."""
    if isinstance(dtype, str) and dtype == "string" and not is_symbolic(x) and are_strings(np.asarray(x)):
        return x
    x, name = x if is_symbolic(x) else np.asarray(x), dtypes.name_of(dtype)
    if str(x.dtype) == name:
        return as_result(x)
    if is_symbolic(x) or is_watched(x):
        return Cast(name)(x)
    return as_result(dtypes.converted(x, name) if name == dtypes.BFLOAT16 else x.astype(name))


def with_axis_last(function: Callable[[Any], Any], x: Any, axis: int) -> Any:
    """function on x with `axis` moved to the end, and back."""
    rank = len(x.shape)
    if not -rank <= axis < rank:
        raise ValueError(f"axis: expected one of {rank} dimensions, got {axis}")
    axis %= rank
    if axis == rank - 1:
        return function(x)
    there = (*range(axis), *range(axis + 1, rank), axis)
    back = (*range(axis), rank - 1, *range(axis, rank - 1))
    return transpose(function(transpose(x, there)), back)


def with_channels_last(function: Callable[[Any], Any], x: Any, data_format: str | None) -> Any:
    """function on images NHWC, for x of either format; None is the format set in config."""
    data_format = data_format or config.image_data_format()
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"data_format: expected 'channels_last' or 'channels_first', got {data_format!r}")
    return with_axis_last(function, x, -1 if data_format == "channels_last" else 1)
