"""Elements of a data set joined to batches, and batches taken apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.elements import as_array
from pydtconv.compat.tensorflow.sparse import SparseTensor, joined_rows


def size_of(batch_size: Any) -> int:
    """A batch size.  Raises ValueError for one that is not positive."""
    size = int(batch_size)
    if size < 1:
        raise ValueError(f"batch: batch_size: expected an integer of 1 or more, got {batch_size!r}")
    return size


class Groups:
    """So many elements at a time; the last ones may be fewer, unless drop_remainder.

    After an error of an element it goes on with the next one.
    """

    def __init__(self, source: Iterable[Any], size: int, drop_remainder: bool) -> None:
        self._elements, self._size, self._drops = iter(source), size, drop_remainder

    def __iter__(self) -> Groups:
        return self

    def __next__(self) -> list[Any]:
        group = list(itertools.islice(self._elements, self._size))
        if not group or (self._drops and len(group) < self._size):
            raise StopIteration
        return group


def how_many(count: int, size: int, drop_remainder: bool) -> int:
    """The number of groups of so many elements; a negative count says that it is not known."""
    return count if count < 0 else count // size if drop_remainder else -(-count // size)


def stacked(group: list[Any]) -> Any:
    """The elements along a new first axis, in their structure.  Raises ValueError for different shapes."""

    def one(*parts: Any) -> Any:
        if isinstance(parts[0], SparseTensor):
            return joined_rows(parts)
        if len({tuple(x.shape) for x in parts}) > 1:
            shapes = " and ".join(str(shape) for shape in sorted({tuple(x.shape) for x in parts})[:2])
            raise ValueError(f"batch: expected elements of one shape, got {shapes}: use padded_batch")
        return array(np.stack([np.asarray(x) for x in parts]))

    return tree.map_structure(one, *group)


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
    given = [None] * arrays[0].ndim if shape is None else list(shape)
    if len(given) != arrays[0].ndim:
        raise ValueError(f"padded_batch: expected a shape of {arrays[0].ndim} extents, got {tuple(given)}")
    wanted = [n if n not in (None, -1) else None for n in given]
    extents = [max(x.shape[d] for x in arrays) if n is None else int(n) for d, n in enumerate(wanted)]
    kind = np.result_type(*arrays)
    usual: Any = b"" if kind.kind == "O" else 0
    padding = usual if value is None else np.asarray(array(value)).item()
    found = np.full((len(arrays), *extents), padding, kind)
    for i, x in enumerate(arrays):
        if any(n > most for n, most in zip(x.shape, extents, strict=True)):
            raise ValueError(f"padded_batch: expected extents that hold {x.shape}, got {extents}")
        inside: Any = (i, *(slice(0, n) for n in x.shape))
        found[inside] = x
    return array(found)


def parts_of(batch: Any) -> Iterator[Any]:
    """The parts of an element along its first axis.  Raises ValueError for what has no axes."""
    if not all(leaf.shape for leaf in tree.flatten(batch)):
        raise ValueError("unbatch: expected elements with a first axis, got one without axes")
    for i in range(len(tree.flatten(batch)[0])):
        yield tree.map_structure(lambda leaf, i=i: as_array(leaf[i]), batch)
