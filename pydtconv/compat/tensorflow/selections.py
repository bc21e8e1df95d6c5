"""Data sets of some of the elements of another, in another order, or kept."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.compat.tensorflow.elements import ahead, called
from pydtconv.compat.tensorflow.pipeline import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Pipeline
from pydtconv.compat.tensorflow.specs import most_general
from pydtconv.compat.tensorflow.transformations import AUTOTUNE
from pydtconv.support.random import next_seed


class Selections(Pipeline):
    """The methods of `Dataset` that leave elements as they are."""

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Any:
        """The elements of which predicate is true."""
        return self.dataset(lambda: filter(lambda each: bool(called(predicate, each)), iter(self)), like=self)

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Any:
        """The elements up to the first one of which predicate is false."""
        return self.dataset(
            lambda: itertools.takewhile(lambda each: bool(called(predicate, each)), iter(self)), like=self
        )

    def unique(self, name: str | None = None) -> Any:
        """Each scalar or vector once, where it comes first."""

        def make() -> Iterator[Any]:
            seen = set()
            for each in self:
                key = tuple((np.asarray(x).tobytes() if x.dtype.kind != "O" else str(x)) for x in tree.flatten(each))
                if key not in seen:
                    seen.add(key)
                    yield each

        return self.dataset(make, like=self)

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        """The elements without those that raise an error where they are made."""

        def make() -> Iterator[Any]:
            source = iter(self)
            while True:
                try:
                    found = next(source)
                except StopIteration:
                    return
                except Exception as error:
                    if log_warning:
                        logging.getLogger("tensorflow").warning("ignore_errors: left out an element: %r", error)
                    continue
                yield found

        return self.dataset(make, like=self)

    def assert_cardinality(self, expected_cardinality: Any) -> Any:
        """The elements, which are so many.  Raises ValueError, at the end of an iteration, where they are not."""
        expected = int(expected_cardinality)

        def make() -> Iterator[Any]:
            seen = 0
            for each in self:
                seen += 1
                if 0 <= expected < seen:
                    break
                yield each
            if seen != expected >= 0:
                found = f"at least {seen}" if seen > expected else f"only {seen}"
                raise ValueError(f"assert_cardinality: expected {expected} elements, got {found}")

        return self.dataset(make, expected, like=self)

    def shard(self, num_shards: int, index: int, name: str | None = None) -> Any:
        """Each num_shards-th element, from that at index on."""
        count, place = int(num_shards), int(index)
        if not 0 <= place < count:
            raise ValueError(f"shard: index: expected 0 to {count - 1}, got {place}")
        known = self._count if self._count < 0 else len(range(place, self._count, count))
        return self.dataset(lambda: itertools.islice(iter(self), place, None, count), known, like=self)

    def shuffle(
        self,
        buffer_size: Any,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Any:
        """Elements in another order: each is drawn from the next buffer_size."""
        if int(buffer_size) < 1:
            raise ValueError(f"shuffle: buffer_size: expected an integer of 1 or more, got {buffer_size!r}")
        start = next_seed() if seed is None else int(seed)
        rounds = itertools.count() if reshuffle_each_iteration is not False else itertools.repeat(0)

        def make() -> Iterator[Any]:
            rng = np.random.default_rng([start, next(rounds)])
            source = iter(self)
            kept = list(itertools.islice(source, int(buffer_size)))
            for each in source:
                place = int(rng.integers(len(kept)))
                chosen, kept[place] = kept[place], each
                yield chosen
            for place in rng.permutation(len(kept)):
                yield kept[place]

        return self.dataset(make, self._count, like=self)

    def repeat(self, count: Any = None, name: str | None = None) -> Any:
        """The elements again and again, count times; without end where that is None or -1."""
        endless = count is None or int(count) == -1
        times = 0 if endless else int(count)

        def make() -> Iterator[Any]:
            for _ in itertools.count() if endless else range(times):
                empty = True
                for each in self:
                    empty = False
                    yield each
                if empty:
                    return

        total = INFINITE_CARDINALITY if endless else self._count if self._count < 0 else self._count * times
        return self.dataset(make, 0 if self._count == 0 else total, like=self)

    def take(self, count: Any, name: str | None = None) -> Any:
        """The first elements; all where count is -1."""
        most = int(count)
        if most == -1:
            return self
        known = self._count if self._count == -2 else most if self._count == -1 else min(most, self._count)
        return self.dataset(lambda: itertools.islice(iter(self), most), known, like=self)

    def skip(self, count: Any, name: str | None = None) -> Any:
        """The elements without the first ones."""
        first = int(count)
        if first == -1:
            return self.take(0)
        known = self._count if self._count < 0 else max(self._count - first, 0)
        return self.dataset(lambda: itertools.islice(iter(self), first, None), known, like=self)

    def concatenate(self, dataset: Any, name: str | None = None) -> Any:
        """The elements of this data set, then those of another."""
        counts = self._count, dataset._count
        known = INFINITE_CARDINALITY if -1 in counts else UNKNOWN_CARDINALITY if -2 in counts else sum(counts)
        return self.dataset(
            lambda: itertools.chain(iter(self), iter(dataset)),
            known,
            example=self._example,
            spec=lambda: tree.map_structure(lambda *each: most_general(each), self._spec(), dataset._spec()),
        )

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Any:
        """The elements, made by a thread ahead of time."""
        room = 2 if int(buffer_size) == AUTOTUNE else int(buffer_size)
        return self if room < 1 else self.dataset(lambda: ahead(iter(self), room), self._count, like=self)

    def cache(self, filename: Any = "", name: str | None = None) -> Any:
        """The elements of the first whole iteration, kept in memory, or in a file that later runs find, too."""
        if filename:
            return self.snapshot(filename)
        kept: list[list[Any]] = []

        def make() -> Iterator[Any]:
            if kept:
                yield from kept[0]
                return
            found = []
            for each in self:
                found.append(each)
                yield each
            kept.append(found)

        return self.dataset(make, self._count, like=self)

    snapshot: Callable[..., Any]
