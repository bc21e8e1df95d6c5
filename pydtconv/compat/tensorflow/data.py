"""`tf.data.Dataset`: a pipeline of elements, which `fit`, `evaluate` and `predict` read batch by batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from pydtconv import tree
from pydtconv.compat.tensorflow import batches
from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.elements import ahead, as_array, as_elements, called, joined
from pydtconv.suggest import missing
from pydtconv.support.random import next_seed

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


class Named(type):
    """A class that says what there is instead of a missing attribute."""

    def __getattr__(cls, name: str) -> NoReturn:
        raise AttributeError(missing(f"tf.data.{cls.__name__}", name, [each for each in dir(cls) if each[0] != "_"]))


class Dataset(metaclass=Named):
    """Elements, each an array or a nested structure of arrays, made anew by each iteration.

    make: gives an iterator over the elements.  count: how many, -1 without end, -2 where that is not known.
    """

    def __init__(self, make: Callable[[], Iterator[Any]], count: int) -> None:
        self._make = make
        self._count = count

    def __iter__(self) -> Iterator[Any]:
        return self._make()

    def __len__(self) -> int:
        if self._count == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        if self._count == UNKNOWN_CARDINALITY:
            raise TypeError("The dataset length is unknown.")
        return self._count

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if isinstance(found := getattr(type(self), name, None), property):
            return found.__get__(self)  # the property's own error, which brought us here
        raise AttributeError(missing("tf.data.Dataset", name, [each for each in dir(Dataset) if each[0] != "_"]))

    @property
    def num_batches(self) -> int | None:
        """What `fit` takes for the batches of an epoch; None where that is not known."""
        return self._count if self._count >= 0 else None

    def cardinality(self) -> Any:
        """The number of elements; -1 where there is no end, -2 where it is not known."""
        return array(self._count, "int64")

    # --- sources ----------------------------------------------------------------------------------------------------
    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """The parts along the first axis of arrays in any structure."""
        arrays = tree.map_structure(as_array, joined(tensors))
        leaves = tree.flatten(arrays)
        counts = {len(leaf) for leaf in leaves}
        if len(counts) != 1:
            raise ValueError(f"from_tensor_slices: expected arrays of one length, got {[len(x) for x in leaves]}")

        def make() -> Iterator[Any]:
            for i in range(len(leaves[0])):
                yield tree.map_structure(lambda leaf, i=i: as_array(leaf[i]), arrays)

        return Dataset(make, len(leaves[0]))

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """One element."""
        element = tree.map_structure(as_array, joined(tensors))
        return Dataset(lambda: iter([element]), 1)

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """What a function's iterator gives; types and shapes follow from that."""
        return Dataset(lambda: (tree.map_structure(as_array, x) for x in generator(*(args or ()))), -2)

    @staticmethod
    def range(*args: int, **kwargs: Any) -> Dataset:
        """Integers, as Python's range."""
        numbers = range(*args)
        return Dataset(lambda: (array(np.int64(i)) for i in numbers), len(numbers))

    @staticmethod
    def zip(*datasets: Any, name: str | None = None) -> Dataset:
        """Elements of several data sets side by side, in their structure; until one ends."""
        structure = datasets[0] if len(datasets) == 1 else datasets
        leaves = tree.flatten(structure)

        def make() -> Iterator[Any]:
            for parts in zip(*leaves, strict=False):
                places = iter(parts)
                yield tree.map_structure(lambda _, places=places: next(places), structure)

        counts = [each._count for each in leaves if each._count != INFINITE_CARDINALITY]
        count = -2 if -2 in counts else min(counts) if counts else -1
        return Dataset(make, count)

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = True, seed: int | None = None, name: Any = None
    ) -> Dataset:
        """The names of files that fit a pattern, in another order at each iteration unless shuffle is False."""
        import glob

        patterns = [file_pattern] if isinstance(file_pattern, str) else list(file_pattern)
        names = sorted(path for pattern in patterns for path in glob.glob(str(pattern)))
        found = Dataset(lambda: iter(names), len(names))
        return found if shuffle is False else found.shuffle(max(len(names), 1), seed)

    # --- what is made of others -------------------------------------------------------------------------------------
    def map(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: Any = None, **kwargs: Any
    ) -> Dataset:
        """map_func of each element, on arrays; of tuples the parts are its arguments."""
        return Dataset(lambda: (as_elements(called(map_func, each)) for each in self), self._count)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements of which predicate is true."""
        return Dataset(lambda: (each for each in self if bool(called(predicate, each))), -2)

    def batch(
        self, batch_size: int, drop_remainder: bool = False, num_parallel_calls: Any = None, **kwargs: Any
    ) -> Dataset:
        """Elements stacked, batch_size at a time."""
        size = batches.size_of(batch_size)
        return Dataset(
            lambda: map(batches.stacked, batches.groups(self, size, drop_remainder)),
            batches.how_many(self._count, size, drop_remainder),
        )

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """As `batch`, of arrays of different extents, which are padded at their ends to the largest of the batch.

        padded_shapes: extents to pad to instead, -1 or None for the largest, and padding_values: by default 0; for
        elements of several arrays in a tuple or a dict of theirs.
        """

        size = batches.size_of(batch_size)
        return Dataset(
            lambda: (
                batches.padded(group, padded_shapes, padding_values)
                for group in batches.groups(self, size, drop_remainder)
            ),
            batches.how_many(self._count, size, drop_remainder),
        )

    def rebatch(self, batch_size: int, drop_remainder: bool = False, name: str | None = None) -> Dataset:
        """Batches of another size."""
        return self.unbatch().batch(batch_size, drop_remainder)

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements of the data sets that map_func makes of the elements, one after the other."""
        return Dataset(lambda: itertools.chain.from_iterable(called(map_func, each) for each in self), -2)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: Any = None,
        deterministic: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """As `flat_map`, but block_length elements of each of cycle_length data sets in turns."""
        at_once, block = cycle_length if cycle_length not in (None, AUTOTUNE) else 4, block_length or 1

        def make() -> Iterator[Any]:
            sources = iter(self)
            open_ones = [iter(called(map_func, each)) for each in itertools.islice(sources, at_once)]
            while open_ones:
                for place, one in enumerate(list(open_ones)):
                    found = list(itertools.islice(one, block))
                    yield from found
                    if len(found) < block:  # it is used up: the next one takes its place
                        open_ones[place] = next((iter(called(map_func, each)) for each in sources), None)
                open_ones = [one for one in open_ones if one is not None]

        return Dataset(make, -2)

    def shard(self, num_shards: int, index: int, name: str | None = None) -> Dataset:
        """Each num_shards-th element, from that at index on."""
        known = self._count if self._count < 0 else len(range(int(index), self._count, int(num_shards)))
        return Dataset(lambda: itertools.islice(iter(self), int(index), None, int(num_shards)), known)

    @staticmethod
    def sample_from_datasets(
        datasets: Any,
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:
        """Elements of data sets that are chosen at random, by weights where they are given."""
        parts = np.ones(len(datasets)) if weights is None else np.asarray(weights, "float64")
        start, rounds = next_seed() if seed is None else int(seed), itertools.count()

        def make() -> Iterator[Any]:
            rng = np.random.default_rng([start, next(rounds)])
            sources, left = [iter(each) for each in datasets], parts / parts.sum()
            while left.any():
                place = int(rng.choice(len(sources), p=left / left.sum()))
                try:
                    yield next(sources[place])
                except StopIteration:
                    if stop_on_empty_dataset:
                        return
                    left[place] = 0

        return Dataset(make, -1 if any(each._count == INFINITE_CARDINALITY for each in datasets) else -2)

    def unbatch(self, name: str | None = None) -> Dataset:
        """The parts of each element along its first axis."""
        return Dataset(lambda: itertools.chain.from_iterable(map(batches.parts_of, self)), -2)

    def shuffle(
        self, buffer_size: int, seed: int | None = None, reshuffle_each_iteration: bool | None = None, name: Any = None
    ) -> Dataset:
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

        return Dataset(make, self._count)

    def repeat(self, count: int | None = None, name: str | None = None) -> Dataset:
        """The elements again and again, count times; without end where that is None or -1."""
        endless = count is None or count == -1

        def make() -> Iterator[Any]:
            for _ in itertools.count() if endless else range(int(count or 0)):
                empty = True
                for each in self:
                    empty = False
                    yield each
                if empty:
                    return

        total = -1 if endless else self._count if self._count < 0 else self._count * int(count or 0)
        return Dataset(make, 0 if self._count == 0 else total)

    def take(self, count: int, name: str | None = None) -> Dataset:
        """The first elements; all where count is -1."""
        if count == -1:
            return self
        known = self._count if self._count == -2 else int(count) if self._count == -1 else min(int(count), self._count)
        return Dataset(lambda: itertools.islice(iter(self), int(count)), known)

    def skip(self, count: int, name: str | None = None) -> Dataset:
        """The elements without the first ones."""
        if count == -1:
            return self.take(0)
        known = self._count if self._count < 0 else max(self._count - int(count), 0)
        return Dataset(lambda: itertools.islice(iter(self), int(count), None), known)

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """The elements of this data set, then those of another."""
        counts = self._count, dataset._count
        known = -1 if -1 in counts else -2 if -2 in counts else sum(counts)
        return Dataset(lambda: itertools.chain(iter(self), iter(dataset)), known)

    def enumerate(self, start: int = 0, name: str | None = None) -> Dataset:
        """(number, element)."""
        return Dataset(lambda: ((array(np.int64(i)), x) for i, x in enumerate(self, start)), self._count)

    def cache(self, filename: str = "", name: str | None = None) -> Dataset:
        """The elements of the first whole iteration, kept in memory."""
        if filename:
            raise NotImplementedError(f"tf.data.Dataset.cache: a file is not supported, only memory: got {filename!r}")
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

        return Dataset(make, self._count)

    def prefetch(self, buffer_size: int, name: str | None = None) -> Dataset:
        """The elements, made by a thread ahead of time."""
        room = 2 if int(buffer_size) == AUTOTUNE else int(buffer_size)
        return self if room < 1 else Dataset(lambda: ahead(iter(self), room), self._count)

    def with_options(self, options: Any, name: str | None = None) -> Dataset:
        """The data set: options change nothing here."""
        return self

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """What the function makes of the data set."""
        return transformation_func(self)

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None) -> Any:
        """reduce_func(state, element) over all elements; the last state."""
        state = initial_state
        for each in self:
            state = reduce_func(state, each)
        return state

    def as_numpy_iterator(self) -> Iterator[Any]:
        """The elements as NumPy's own arrays."""
        return (tree.map_structure(lambda x: x.numpy() if hasattr(x, "numpy") else x, each) for each in self)

    @property
    def element_spec(self) -> Any:
        """Shapes and dtypes of the first element."""
        return tree.map_structure(lambda x: (np.shape(x), np.asarray(x).dtype.name), next(iter(self)))


class Options:
    """Options of a data set, which change nothing here."""

    def __init__(self) -> None:
        self.deterministic: bool | None = None
