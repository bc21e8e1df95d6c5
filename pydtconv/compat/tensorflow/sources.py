"""Data sets out of arrays, functions, numbers, files and other data sets."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.compat.tensorflow.arrays import array, in_bytes, is_text, name_of, text_of
from pydtconv.compat.tensorflow.elements import as_array, joined
from pydtconv.compat.tensorflow.pipeline import (
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Pipeline,
    specs_of,
    without_axis,
)
from pydtconv.compat.tensorflow.specs import TensorSpec, most_general
from pydtconv.support.random import next_seed


def paths_of(names: Any) -> list[str]:
    """File names: one, several, or a data set of them."""
    if isinstance(names, Pipeline):
        return [text_of(name) for each in names for name in in_bytes(each).reshape(-1)]
    if is_text(names):
        return [text_of(name) for name in in_bytes(names).reshape(-1)]
    return [str(each) for each in (names if isinstance(names, (list, tuple)) else [names])]


class Sources(Pipeline):
    """The constructors of `Dataset`."""

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Any:
        """The parts along the first axis of arrays in any structure."""
        arrays = tree.map_structure(as_array, joined(tensors))
        leaves = tree.flatten(arrays)
        if not all(leaf.shape for leaf in leaves):
            raise ValueError("from_tensor_slices: expected arrays with a first axis, got one without axes")
        counts = {len(leaf) for leaf in leaves}
        if len(counts) != 1:
            raise ValueError(f"from_tensor_slices: expected arrays of one length, got {[len(x) for x in leaves]}")

        def make() -> Iterator[Any]:
            for i in range(len(leaves[0])):
                yield tree.map_structure(lambda leaf, i=i: as_array(leaf[i]), arrays)

        return Pipeline.dataset(make, len(leaves[0]), spec=lambda: without_axis(specs_of(arrays)))

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Any:
        """One element."""
        element = tree.map_structure(as_array, joined(tensors))
        return Pipeline.dataset(lambda: iter([element]), 1)

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Any:
        """What a function's iterator gives, in the dtypes of output_signature or output_types.

        Raises TypeError for an element of another structure, and for one whose shape does not fit.
        """
        if not callable(generator):
            raise TypeError(f"from_generator: generator: expected a function, got {generator!r}")
        spec = output_signature
        if spec is None and output_types is not None:
            spec = _specs(output_types, output_shapes)
        given = [array(each).numpy() for each in args or ()]

        def fitting(element: Any) -> Any:
            return tree.map_structure(as_array, element) if spec is None else _fitting(spec, element)

        def make() -> Iterator[Any]:
            return map(fitting, iter(generator(*given)))

        return Pipeline.dataset(make, spec=None if spec is None else lambda: spec)

    @staticmethod
    def range(*args: Any, **kwargs: Any) -> Any:
        """Integers, as Python's range; output_type: their dtype."""
        numbers, kind = range(*map(int, args)), name_of(kwargs.get("output_type") or "int64")
        return Pipeline.dataset(lambda: (array(i, kind) for i in numbers), len(numbers), example=lambda: array(0, kind))

    @staticmethod
    def counter(start: int = 0, step: int = 1, dtype: Any = "int64", name: str | None = None) -> Any:
        """Numbers without end."""
        kind = name_of(dtype)
        return Pipeline.dataset(lambda: (array(i, kind) for i in itertools.count(start, step)), INFINITE_CARDINALITY)

    @staticmethod
    def random(seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None) -> Any:
        """Integers from 0 to 2**32 - 1 at random, without end."""
        start, rounds = _start(seed), itertools.count()

        def make() -> Iterator[Any]:
            rng = np.random.default_rng([start, next(rounds) if rerandomize_each_iteration else 0])
            return (array(rng.integers(2**32), "int64") for _ in itertools.count())

        return Pipeline.dataset(make, INFINITE_CARDINALITY)

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Any:
        """Elements of several data sets side by side, in their structure; until one ends."""
        structure = (args[0] if len(args) == 1 else args) if args else datasets
        leaves = tree.flatten(structure)
        if not leaves or not all(isinstance(each, Pipeline) for each in leaves):
            raise TypeError(f"zip: expected data sets, got {structure!r}")

        def make() -> Iterator[Any]:
            for parts in zip(*leaves, strict=False):
                places = iter(parts)
                yield tree.map_structure(lambda _, places=places: next(places), structure)

        def of_all(what: str) -> Callable[[], Any]:
            return lambda: tree.map_structure(lambda each: getattr(each, what)(), structure)

        counts = [each._count for each in leaves if each._count != INFINITE_CARDINALITY]
        count = UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in counts else min(counts, default=INFINITE_CARDINALITY)
        return Pipeline.dataset(make, count, example=of_all("_example"), spec=of_all("_spec"))

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: int | None = None, name: Any = None) -> Any:
        """The names of files that fit patterns, in another order at each iteration unless shuffle is False.

        Raises ValueError where no file does.
        """
        patterns = paths_of(file_pattern)
        names = sorted(path for pattern in patterns for path in glob.glob(pattern))
        if not names:
            raise ValueError(f"list_files: expected patterns that files fit, got {', '.join(patterns)}")
        found = Pipeline.dataset.from_tensor_slices(names)
        return found if shuffle is False else found.shuffle(len(names), seed)

    @staticmethod
    def sample_from_datasets(
        datasets: Any,
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Any:
        """Elements of data sets that are chosen at random, by weights where they are given."""
        parts = np.ones(len(datasets)) if weights is None else np.asarray(weights, "float64")
        if parts.shape != (len(datasets),):
            raise ValueError(f"sample_from_datasets: weights: expected {len(datasets)}, got shape {parts.shape}")
        start, rounds = _start(seed), itertools.count()

        def make() -> Iterator[Any]:
            rng = np.random.default_rng([start, next(rounds)])
            left = parts / parts.sum()
            while left.any():
                yield int(rng.choice(len(datasets), p=left / left.sum())), left

        count = INFINITE_CARDINALITY if any(each._count == -1 for each in datasets) else UNKNOWN_CARDINALITY
        return _chosen(datasets, make, count, stop_on_empty_dataset)

    @staticmethod
    def choose_from_datasets(datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = True) -> Any:
        """Elements of data sets whose places another data set gives."""

        def make() -> Iterator[Any]:
            return ((int(place), None) for place in choice_dataset)

        return _chosen(datasets, make, UNKNOWN_CARDINALITY, stop_on_empty_dataset)


def _start(seed: Any) -> int:
    return next_seed() if seed is None else int(seed)


def _chosen(datasets: Any, choices: Callable[[], Iterable[Any]], count: int, stops: bool) -> Any:
    """Elements of data sets by their places; a place comes with the weights, in which an ended one becomes 0."""

    def make() -> Iterator[Any]:
        sources = [iter(each) for each in datasets]
        for place, left in choices():
            if not 0 <= place < len(sources):
                raise ValueError(f"choose_from_datasets: expected places below {len(sources)}, got {place}")
            try:
                yield next(sources[place])
            except StopIteration:
                if stops:
                    return
                if left is not None:
                    left[place] = 0

    def spec() -> Any:
        return tree.map_structure(lambda *each: most_general(each), *(each.element_spec for each in datasets))

    return Pipeline.dataset(make, count, example=datasets[0]._example, spec=spec)


def _specs(kinds: Any, shapes: Any) -> Any:
    """Specs of elements, from dtypes and shapes in one structure; without shapes they are not known."""
    if isinstance(kinds, (list, tuple)):
        return tuple(_specs(kind, None if shapes is None else shapes[i]) for i, kind in enumerate(kinds))
    if isinstance(kinds, dict):
        return {key: _specs(kind, None if shapes is None else shapes[key]) for key, kind in kinds.items()}
    return TensorSpec(shapes, kinds)


def _fitting(spec: Any, element: Any) -> Any:
    if isinstance(spec, TensorSpec):
        try:
            found = array(element, spec.dtype)
        except (TypeError, ValueError) as error:
            raise TypeError(f"from_generator: expected an element of {spec!r}, got {element!r}: {error}") from None
        if not spec.shape.is_compatible_with(found.shape):
            raise TypeError(f"from_generator: expected an element of {spec!r}, got shape {tuple(found.shape)}")
        return found
    if isinstance(spec, dict) and isinstance(element, dict) and spec.keys() == element.keys():
        return {key: _fitting(each, element[key]) for key, each in spec.items()}
    if isinstance(spec, (list, tuple)) and isinstance(element, (list, tuple)) and len(spec) == len(element):
        return tuple(_fitting(each, part) for each, part in zip(spec, element, strict=True))
    raise TypeError(f"from_generator: expected elements of the structure {spec!r}, got {element!r}")
