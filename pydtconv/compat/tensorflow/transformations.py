"""Data sets whose elements are made of those of another: by functions, batches, windows, groups."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.compat.tensorflow import batches
from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.elements import as_elements, called, made
from pydtconv.compat.tensorflow.pipeline import (
    Pipeline,
    mapped_specs,
    open_as,
    with_axis,
    without_axis,
)

AUTOTUNE = -1


class Transformations(Pipeline):
    """The methods of `Dataset` that make other elements."""

    def map(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: Any = None, **kwargs: Any
    ) -> Any:
        """map_func of each element, on arrays; of tuples the parts are its arguments."""

        def of(element: Any) -> Any:
            return made(called(map_func, element))

        def spec() -> Any:
            example = self._example()
            return open_as(self._spec(), example, of(example))

        return self.dataset(lambda: map(of, iter(self)), self._count, example=lambda: of(self._example()), spec=spec)

    def batch(
        self, batch_size: Any, drop_remainder: bool = False, num_parallel_calls: Any = None, **kwargs: Any
    ) -> Any:
        """Elements stacked, batch_size at a time."""
        return self._batched(batch_size, drop_remainder, batches.stacked)

    def _batched(self, batch_size: Any, drops: bool, join: Callable[[list[Any]], Any]) -> Any:
        size = batches.size_of(batch_size)
        return self.dataset(
            lambda: map(join, batches.Groups(self, size, drops)),
            batches.how_many(self._count, size, drops),
            example=lambda: join([self._example()] * size),
            spec=lambda: with_axis(self._spec(), size if drops else None),
        )

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Any:
        """As `batch`, of arrays of different extents, which are padded at their ends to the largest of the batch.

        padded_shapes: extents to pad to instead, -1 or None for the largest, and padding_values: by default 0; for
        elements of several arrays in a tuple or a dict of theirs.
        """
        return self._batched(
            batch_size, drop_remainder, lambda group: batches.padded(group, padded_shapes, padding_values)
        )

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Any:
        """Batches of another size, or of several sizes in turns."""
        single = self.unbatch()
        if np.ndim(batch_size) == 0:
            return single.batch(batch_size, drop_remainder)
        sizes = [batches.size_of(each) for each in batch_size]

        def make() -> Iterator[Any]:
            source = iter(single)
            for size in itertools.cycle(sizes):
                group = list(itertools.islice(source, size))
                if len(group) < size and (drop_remainder or not group):
                    return
                yield batches.stacked(group)

        return self.dataset(make, spec=lambda: with_axis(single._spec(), None))

    def unbatch(self, name: str | None = None) -> Any:
        """The parts of each element along its first axis."""
        return self.dataset(
            lambda: itertools.chain.from_iterable(map(batches.parts_of, self)),
            example=lambda: next(batches.parts_of(self._example())),
            spec=lambda: without_axis(self._spec()),
        )

    def window(
        self, size: int, shift: int | None = None, stride: int = 1, drop_remainder: bool = False, name: Any = None
    ) -> Any:
        """Data sets of size elements each, one beginning shift elements after the other: by default size.

        Elements of several arrays are such data sets in their structure.
        """
        step = size if shift is None else shift
        for told, value in (("size", size), ("shift", step), ("stride", stride)):
            if int(value) < 1:
                raise ValueError(f"window: {told}: expected an integer of 1 or more, got {value!r}")
        reach = (int(size) - 1) * int(stride) + 1

        def of_leaves(elements: list[Any]) -> Any:
            def one(*leaves: Any) -> Any:
                return self.dataset(lambda: iter(leaves), len(leaves))

            return tree.map_structure(one, *elements)

        def make() -> Iterator[Any]:
            source = iter(self)
            kept: list[Any] = []
            while True:
                kept += itertools.islice(source, reach - len(kept)) if len(kept) < reach else []
                if not kept or (drop_remainder and len(kept) < reach):
                    return
                yield of_leaves(kept[:reach:stride])
                dropped = step - len(kept)
                kept = kept[step:]
                if dropped > 0:
                    next(itertools.islice(source, dropped - 1, None), None)

        return self.dataset(make)

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Any:
        """The elements of the data sets that map_func makes of the elements, one after the other."""
        return self.dataset(
            lambda: itertools.chain.from_iterable(_inner(map_func, each) for each in self),
            example=lambda: _inner(map_func, self._example())._example(),
            spec=lambda: _inner(map_func, self._example())._spec(),
        )

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: Any = None,
        deterministic: Any = None,
        name: str | None = None,
    ) -> Any:
        """As `flat_map`, but block_length elements of each of cycle_length data sets in turns."""
        at_once, block = cycle_length if cycle_length not in (None, AUTOTUNE) else 4, block_length or 1

        def make() -> Iterator[Any]:
            sources = iter(self)
            open_ones = [iter(_inner(map_func, each)) for each in itertools.islice(sources, at_once)]
            while open_ones:
                for place, one in enumerate(list(open_ones)):
                    found = list(itertools.islice(one, block))
                    yield from found
                    if len(found) < block:  # it is used up: the next one takes its place
                        open_ones[place] = next((iter(_inner(map_func, each)) for each in sources), None)
                open_ones = [one for one in open_ones if one is not None]

        return self.dataset(
            make,
            example=lambda: _inner(map_func, self._example())._example(),
            spec=lambda: _inner(map_func, self._example())._spec(),
        )

    def enumerate(self, start: int = 0, name: str | None = None) -> Any:
        """(number, element)."""
        return self.dataset.zip(self.dataset.counter(int(start)), self)

    def scan(self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None) -> Any:
        """What scan_func(state, element) gives as the second part, with its first part as the next state."""

        def make() -> Iterator[Any]:
            state = as_elements(initial_state)
            for each in self:
                state, found = made(scan_func(state, each))
                yield found

        return self.dataset(make, self._count)

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Any], Any],
        window_size: Any = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> Any:
        """The elements of the data sets that reduce_func(key, data set) makes of window_size elements of equal keys."""
        if (window_size is None) == (window_size_func is None):
            raise ValueError("group_by_window: expected either window_size or window_size_func")

        def make() -> Iterator[Any]:
            groups: dict[int, list[Any]] = {}
            for each in self:
                key = int(called(key_func, each))
                group = groups.setdefault(key, [])
                group.append(each)
                size = window_size if window_size_func is None else window_size_func(array(key, "int64"))
                if len(group) >= batches.size_of(size):
                    yield from self._reduced(reduce_func, key, groups.pop(key))
            for key, group in groups.items():
                yield from self._reduced(reduce_func, key, group)

        return self.dataset(make)

    def _reduced(self, reduce_func: Callable[[Any, Any], Any], key: int, group: list[Any]) -> Any:
        return reduce_func(array(key, "int64"), self.dataset(lambda: iter(group), len(group), like=self))

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Any,
        bucket_batch_sizes: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Any:
        """Padded batches of elements whose lengths lie between the same two boundaries."""
        bounds, sizes = [int(n) for n in bucket_boundaries], [batches.size_of(n) for n in bucket_batch_sizes]
        if len(sizes) != len(bounds) + 1:
            raise ValueError(f"bucket_by_sequence_length: expected {len(bounds) + 1} batch sizes, got {len(sizes)}")

        def bucket(*element: Any) -> int:
            return int(np.searchsorted(bounds, int(element_length_func(*element)), "right"))

        def batched(place: Any, group: Any) -> Any:
            size, shapes = sizes[int(place)], padded_shapes
            if no_padding:
                return group.batch(size, drop_remainder)
            if pad_to_bucket_boundary:
                if int(place) == len(bounds):
                    raise ValueError(
                        f"bucket_by_sequence_length: expected lengths below {bounds[-1]} to pad to a boundary"
                    )
                known = mapped_specs(lambda each: each.shape, group.element_spec) if shapes is None else shapes
                shapes = _bounded(known, bounds[int(place)] - 1)
            return group.padded_batch(size, shapes, padding_values, drop_remainder)

        return self.group_by_window(bucket, batched, window_size_func=lambda place: sizes[int(place)])

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Any:
        """(class, element) of elements that are left out at random, so that classes come with these probabilities.

        initial_dist: their probabilities in the data; where it is not given they are counted.
        """
        target = np.asarray(target_dist, "float64")
        known = None if initial_dist is None else np.asarray(initial_dist, "float64")
        draws = self.dataset.random(seed, True)

        def make() -> Iterator[Any]:
            seen = np.ones(len(target))
            for each, draw in zip(self, draws, strict=False):
                label = int(called(class_func, each))
                seen[label] += 1
                ratio = target / np.maximum(seen / seen.sum() if known is None else known, 1e-12)
                if int(draw) / 2**32 < ratio[label] / ratio.max():
                    yield array(label, "int32"), each

        return self.dataset(make)


def _inner(map_func: Callable[..., Any], element: Any) -> Any:
    found = called(map_func, element)
    if not isinstance(found, Pipeline):
        raise TypeError(f"expected a function that gives a data set, got {found!r}")
    return found


def _bounded(shapes: Any, bound: int) -> Any:
    """Shapes whose open extents are the bound."""

    def closed(shape: Any) -> Any:
        return [bound if n in (None, -1) else int(n) for n in getattr(shape, "shape", shape)]

    if isinstance(shapes, dict):
        return {key: closed(each) for key, each in shapes.items()}
    several = isinstance(shapes, tuple) and any(hasattr(each, "shape") or np.ndim(each) for each in shapes)
    return tuple(map(closed, shapes)) if several else closed(shapes)
