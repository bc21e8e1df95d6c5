"""Elements of a data set joined to batches, and batches taken apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.elements import as_array


def size_of(batch_size: Any) -> int:
    """A batch size.  Raises ValueError for one that is not positive."""
    size = int(batch_size)
    if size < 1:
        raise ValueError(f"batch: batch_size: expected an integer of 1 or more, got {batch_size!r}")
    return size


def groups(source: Iterable[Any], size: int, drop_remainder: bool) -> Iterator[list[Any]]:
    """So many elements at a time; the last ones may be fewer, unless drop_remainder."""
    elements = iter(source)
    while group := list(itertools.islice(elements, size)):
        if len(group) == size or not drop_remainder:
            yield group


def how_many(count: int, size: int, drop_remainder: bool) -> int:
    """The number of groups of so many elements; a negative count says that it is not known."""
    return count if count < 0 else count // size if drop_remainder else -(-count // size)


def stacked(group: list[Any]) -> Any:
    """The elements along a new first axis, in their structure."""
    return tree.map_structure(lambda *parts: array(np.stack([np.asarray(x) for x in parts])), *group)


def padded(group: list[Any], shapes: Any, values: Any) -> Any:
    """As `stacked`, of arrays that are padded at their ends; shapes and values as those of `Dataset.padded_batch`."""
    first = group[0]
    if not isinstance(first, (tuple, dict)):
        return _padded(group, shapes, values)
    keys = list(first) if isinstance(first, dict) else list(range(len(first)))
    shapes, values = (
        each if isinstance(each, (tuple, list, dict)) else dict.fromkeys(keys, each) for each in (shapes, values)
    )
    parts = {key: _padded([each[key] for each in group], shapes[key], values[key]) for key in keys}
    return parts if isinstance(first, dict) else tuple(parts.values())


def _padded(group: list[Any], shape: Any, value: Any) -> Any:
    arrays = [np.asarray(x) for x in group]
    wanted = [n if n not in (None, -1) else None for n in shape or [None] * arrays[0].ndim]
    extents = [max(x.shape[d] for x in arrays) if n is None else int(n) for d, n in enumerate(wanted)]
    kind = np.result_type(*arrays)
    found = np.full((len(arrays), *extents), value or ("" if kind.kind in "US" else 0), kind)
    for i, x in enumerate(arrays):
        if any(n > most for n, most in zip(x.shape, extents, strict=True)):
            raise ValueError(f"padded_batch: expected extents that hold {x.shape}, got {extents}")
        inside: Any = (i, *(slice(0, n) for n in x.shape))
        found[inside] = x
    return array(found)


def parts_of(batch: Any) -> Iterator[Any]:
    """The parts of an element along its first axis."""
    for i in range(len(tree.flatten(batch)[0])):
        yield tree.map_structure(lambda leaf, i=i: as_array(leaf[i]), batch)
