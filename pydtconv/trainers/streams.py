"""Batches out of whatever yields them: generators, data sets with `__getitem__`, loaders, any iterable."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from pydtconv.trainers.arrays import ArrayData, Batch, class_weights, count_samples, is_arrays, to_arrays
from pydtconv.utils.random import next_seed


class StreamData:
    """Batches as an iterable gives them: x, (x,), (x, y) or (x, y, sample_weight), of arrays or what becomes arrays.

    num_batches: batches of an epoch, None where not known.  restarts: whether a new epoch starts from the beginning.
    """

    def __init__(
        self, source: Any, shuffle: bool | str = False, class_weight: Mapping[int, float] | None = None
    ) -> None:
        self.source = source
        self.class_weight = class_weight
        self.indexed = hasattr(source, "__getitem__") and (hasattr(source, "num_batches") or hasattr(source, "__len__"))
        self.num_batches = _length(source)
        self.restarts = not hasattr(source, "__next__")
        self.shuffle = bool(shuffle) and self.indexed and self.num_batches is not None
        self._started: Iterator[Any] | None = None
        self._first: Batch | None = None

    def epoch(self) -> Iterator[Batch]:
        """The batches of one epoch."""
        first, started = self._first, self._started
        self._first = self._started = None
        if first is not None:
            yield first
        if started is None:
            started = self._indexed_items() if self.indexed else iter(self.source)
        for item in started:
            yield self._batch(item)

    def first(self) -> Batch:
        """The first batch; the coming epoch starts with it.  Raises ValueError where there is none."""
        if self.indexed:
            if self.num_batches == 0:
                raise ValueError(f"x: expected at least one batch, got an empty {type(self.source).__name__}")
            return self._batch(self.source[0])
        if self._first is None:
            self._started = iter(self.source)
            item = next(self._started, None)
            if item is None:
                raise ValueError(f"x: expected at least one batch, got an empty {type(self.source).__name__}")
            self._first = self._batch(item)
        return self._first

    def _indexed_items(self) -> Iterator[Any]:
        workers = getattr(self.source, "workers", 1) or 1
        order: Iterable[int] = _counting(self.num_batches)
        if self.shuffle and self.num_batches is not None:
            order = np.random.default_rng(next_seed()).permutation(self.num_batches).tolist()
        get = self.source.__getitem__
        if workers <= 1:
            yield from map(get, order)
        else:
            yield from _ahead(get, order, workers, getattr(self.source, "max_queue_size", 10))

    def _batch(self, item: Any) -> Batch:
        parts = tuple(item) if isinstance(item, (tuple, list)) and not isinstance(item, np.ndarray) else (item,)
        if not 1 <= len(parts) <= 3:
            raise ValueError(f"a batch: expected (x,), (x, y) or (x, y, sample_weight), got {len(parts)} parts")
        x, y, weights = (*parts, None, None)[:3]
        x, y, weights = to_arrays("x", x), to_arrays("y", y), to_arrays("sample_weight", weights)
        if self.class_weight is not None:
            if weights is not None:
                raise ValueError("expected either class_weight or sample weights in the batches, got both")
            weights = class_weights(y, self.class_weight)
        return Batch(x, y, weights, count_samples(x=x, y=y, sample_weight=weights))

    def on_epoch_begin(self) -> None:
        _call(self.source, "on_epoch_begin")

    def on_epoch_end(self) -> None:
        _call(self.source, "on_epoch_end")


def _call(source: Any, name: str) -> None:
    method = getattr(source, name, None)
    if callable(method):
        method()


def _length(source: Any) -> int | None:
    if hasattr(source, "num_batches"):
        return source.num_batches
    try:
        return len(source)
    except TypeError:
        return None


def _counting(count: int | None) -> Iterator[int]:
    index = 0
    while count is None or index < count:
        yield index
        index += 1


def _ahead(get: Any, order: Iterable[int], workers: int, queue: int) -> Iterator[Any]:
    """get(index) in order, computed by threads ahead of time."""
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for index in order:
                waiting.append(pool.submit(get, index))
                if len(waiting) >= max(queue, 1):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def make_data(
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    batch_size: int | None = None,
    shuffle: bool | str = False,
    class_weight: Mapping[int, float] | None = None,
) -> ArrayData | StreamData:
    """The batches of what fit, evaluate and predict are given.

    Raises ValueError for arguments that do not go together and TypeError for data that is neither arrays nor iterable.
    """
    if x is None:
        raise ValueError("x: expected arrays, or an iterable of batches, got None")
    if is_arrays(x):
        return ArrayData(x, y, sample_weight, batch_size, shuffle, class_weight)
    if not hasattr(x, "__iter__") and not hasattr(x, "__getitem__"):
        raise TypeError(f"x: expected arrays, or an iterable of batches, got {type(x).__name__}")
    for name, value in ("y", y), ("sample_weight", sample_weight):
        if value is not None:
            raise ValueError(f"{name}: expected None where x is a {type(x).__name__}: its batches hold the {name}")
    if batch_size is not None:
        raise ValueError(f"batch_size: expected None where x is a {type(x).__name__}, which makes its own batches")
    return StreamData(x, shuffle, class_weight)


class Epochs:
    """Runs through data epoch by epoch, each of `steps` batches where that is given, else of all of them.

    Epochs with `steps` go on where the last one stopped.  Where data ends within an epoch, a warning says so.
    """

    def __init__(self, data: ArrayData | StreamData, steps: int | None) -> None:
        if steps is not None and (not isinstance(steps, (int, np.integer)) or steps < 1):
            raise ValueError(f"steps: expected an integer of 1 or more, got {steps!r}")
        self.data = data
        self.steps = steps
        self.seen: int | None = None
        self.ran_dry = False
        self._going: Iterator[Batch] | None = None

    @property
    def num_batches(self) -> int | None:
        """Batches of an epoch, as far as it is known."""
        return self.steps or self.data.num_batches or self.seen

    def __iter__(self) -> Iterator[tuple[int, Batch]]:
        self.data.on_epoch_begin()
        if self._going is None or self.steps is None:
            self._going = self.data.epoch()
        done = 0
        while self.steps is None or done < self.steps:
            batch = next(self._going, None)
            if batch is None and done == 0 and self.steps is not None and self.data.restarts:
                self._going = self.data.epoch()
                batch = next(self._going, None)
            if batch is None:
                self._going = None
                if self.steps is not None or done == 0:
                    self.ran_dry = done == 0 or not self.data.restarts
                    self._warn()
                break
            yield done, batch
            done += 1
            self.seen = max(done, self.seen or 0)
        self.data.on_epoch_end()

    def _warn(self) -> None:
        warnings.warn(
            "the input ran out of data; training is interrupted: expected the generator or data set to give "
            f"{self.steps or 'at least one'} batch(es) for each epoch",
            UserWarning,
            stacklevel=5,
        )


def groups(batches: Iterable[tuple[int, Batch]], count: int) -> Iterator[tuple[int, int, Iterator[Batch]]]:
    """Batches by steps_per_execution: (first step, last step, batches).  A group must be used up before the next."""
    source = iter(batches)
    for step, batch in source:
        yield step, step + count - 1, _group(batch, source, count)


def _group(first: Batch, source: Iterator[tuple[int, Batch]], count: int) -> Iterator[Batch]:
    yield first
    for _ in range(count - 1):
        item = next(source, None)
        if item is None:
            return
        yield item[1]
