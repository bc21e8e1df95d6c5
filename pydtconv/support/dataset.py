"""Data that comes in batches (`PyDataset`) and the splitting of data in two."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from pydtconv.support.random import next_seed


class PyDataset:
    """Base of data sets that make their batches one by one.

    A subclass defines `__len__` (number of batches) and `__getitem__(index)`, which returns `(x, y)` or
    `(x, y, sample_weight)`, and may define `on_epoch_begin` and `on_epoch_end`, for example to shuffle; then also
    `get_state()`, of plain data and arrays, and `set_state(state)`, for checkpoints to keep the order.
    workers: threads that call `__getitem__` ahead of training (1: none, batches are made when they are wanted).
    max_queue_size: batches that may wait.  use_multiprocessing: workers are processes, forked before each epoch: what
    `__getitem__` changes stays there, and random numbers follow from the seed and the number of the batch.
    """

    def __init__(self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10) -> None:
        self.workers = workers
        self.use_multiprocessing = use_multiprocessing
        self.max_queue_size = max_queue_size

    def __repr__(self) -> str:
        names = getattr(self, "_pydt_class_names", ())
        try:
            batches = f"{self.num_batches} batches"
        except Exception:  # a subclass that is not complete
            batches = "no length"
        return f"<{type(self).__name__}: {batches}{f' of {len(names)} classes' if names else ''}>"

    @property
    def num_batches(self) -> int | None:
        """Batches of an epoch; None where there is no end.  A subclass may set it."""
        if "num_batches" in vars(self):
            return int(vars(self)["num_batches"])
        try:
            return len(self)  # type: ignore[arg-type]
        except TypeError:
            name = type(self).__name__
            raise TypeError(f"{name}: expected a method __len__ that returns the number of batches") from None

    @num_batches.setter
    def num_batches(self, value: int) -> None:
        vars(self)["num_batches"] = value

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: expected a method __getitem__(index) that returns a batch")

    def __iter__(self) -> Iterator[Any]:
        unknown = type(self).num_batches is PyDataset.num_batches and not hasattr(self, "__len__")
        count, index = None if unknown else self.num_batches, 0
        while count is None or index < count:
            yield self[index]
            index += 1

    def on_epoch_begin(self) -> None:
        """Called before an epoch."""

    def on_epoch_end(self) -> None:
        """Called after an epoch."""


class Walked(PyDataset):
    """A data set of this package: a walk through its batches keeps the order that it began with.

    Epochs of fewer steps than it has batches end within a walk, and `on_epoch_end` then makes the order of the next
    one.  As in Keras, a `PyDataset` of another class changes at once.
    """

    def _pydt_walk(self) -> Any:
        """The data set with the order of now, for one walk; all but what `on_epoch_end` sets is shared."""
        return copy.copy(self)


Sequence = PyDataset


def split_dataset(
    dataset: Any,
    left_size: float | int | None = None,
    right_size: float | int | None = None,
    shuffle: bool = False,
    seed: int | None = None,
    preferred_backend: str | None = None,
) -> tuple[Any, Any]:
    """Splits an array, a list of samples, or a tuple or dict of arrays of equal length in two.

    left_size, right_size: a fraction from 0 to 1 or a number of samples; one of them may be left out.  The left part
    is the first samples, the right part the last ones.
    preferred_backend: Keras's; only None means something here.  Returns (left, right), of the structure of `dataset`.
    Raises ValueError for sizes that do not fit and TypeError for data that is none of these.
    """
    if preferred_backend is not None:
        raise NotImplementedError(f"split_dataset: preferred_backend: expected None, got {preferred_backend!r}")
    leaves = tuple(dataset.values()) if isinstance(dataset, dict) else dataset
    leaves = leaves if isinstance(leaves, tuple) else (leaves,)
    if not leaves or not all(isinstance(leaf, (np.ndarray, list)) for leaf in leaves):
        raise TypeError(
            "split_dataset: expected dataset to be an array, a list, or a tuple or dict of them, "
            f"got {type(dataset).__name__}"
        )
    total = len(leaves[0])
    if any(len(leaf) != total for leaf in leaves):
        raise ValueError(f"split_dataset: expected arrays of equal length, got {[len(leaf) for leaf in leaves]}")
    left, right = _sizes(total, left_size, right_size)
    order = np.arange(total)
    if shuffle:
        np.random.default_rng(next_seed() if seed is None else seed).shuffle(order)
    return _take(dataset, order[:left]), _take(dataset, order[total - right :])


def _sizes(total: int, left: float | int | None, right: float | int | None) -> tuple[int, int]:
    counts = [_count(total, "left_size", left), _count(total, "right_size", right)]
    if counts[0] is None and counts[1] is None:
        raise ValueError("split_dataset: expected left_size or right_size, got neither")
    first = counts[0] if counts[0] is not None else total - (counts[1] or 0)
    second = counts[1] if counts[1] is not None else total - first
    if first + second > total or first == 0 or second == 0:
        raise ValueError(
            f"split_dataset: expected two parts of {total} samples, neither empty; "
            f"left_size={left!r} and right_size={right!r} make {first} and {second}"
        )
    return first, second


def _count(total: int, name: str, size: float | int | None) -> int | None:
    if size is None:
        return None
    if isinstance(size, float) and 0 < size < 1:
        return round(size * total)
    if isinstance(size, (int, np.integer)) and not isinstance(size, bool) and 0 < size < total:
        return int(size)
    raise ValueError(f"split_dataset: expected {name} as a fraction below 1 or a count below {total}, got {size!r}")


def _take(data: Any, order: np.ndarray) -> Any:
    if isinstance(data, dict):
        return {key: _take(value, order) for key, value in data.items()}
    if isinstance(data, tuple):
        return tuple(_take(value, order) for value in data)
    if isinstance(data, list):
        return [data[i] for i in order]
    return data[order]
