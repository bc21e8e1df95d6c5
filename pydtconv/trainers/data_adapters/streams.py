"""Batches out of whatever yields them: generators, data sets with `__getitem__`, loaders, any iterable."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from pydtconv import replica, tree
from pydtconv.dtypes import refuse_kinds
from pydtconv.support.dataset import PyDataset
from pydtconv.support.digest import sampled
from pydtconv.support.lazy_zeros import untouched
from pydtconv.support.random import next_seed
from pydtconv.support.workers import ahead
from pydtconv.trainers.data_adapters.arrays import (
    ArrayData,
    Batch,
    class_weights,
    count_samples,
    is_arrays,
    kept_order,
    to_arrays,
)


class StreamData:
    """Batches as an iterable gives them: x, (x,), (x, y) or (x, y, sample_weight), of arrays or what becomes arrays.

    num_batches: batches of an epoch, None where not known.  restarts: whether a new epoch starts from the beginning.
    whole: set where batches are to be left in the structure that the source gives.
    """

    whole = False

    def __init__(
        self, source: Any, shuffle: bool | str = False, class_weight: Mapping[int, float] | None = None
    ) -> None:
        self.source = self._walk = source
        self.class_weight = class_weight
        self.indexed = hasattr(source, "__getitem__") and (hasattr(source, "num_batches") or hasattr(source, "__len__"))
        self.num_batches = _length(source)
        self.restarts = self.indexed or not hasattr(source, "__next__")
        self.shuffle = bool(shuffle) and self.indexed and self.num_batches is not None
        self._started: Iterator[Any] | None = None
        self._first: Batch | None = None
        self._order: np.ndarray | None = None
        self._stand_in: Any = None
        #: of the first global batch, for processes that must read the same ones to compare
        self.first_seen: list[str] | None = None

    @property
    def class_names(self) -> Collection[str]:
        """The classes that the labels of a data set of this package are numbers of; others may mean anything by it."""
        return getattr(self.source, "_pydt_class_names", ())

    def not_finite(self) -> str:
        """Nothing is known of the samples without reading them again."""
        return ""

    def epoch(self) -> Iterator[Batch]:
        """The batches of one epoch; each call shuffles anew, where there is an order to shuffle."""
        self._order = None
        if self.shuffle and self.num_batches is not None:
            self._order = np.random.default_rng(next_seed()).permutation(self.num_batches)
        self._walk = self._new_walk()
        return self._batches(0)

    def _new_walk(self) -> Any:
        """The source, or what keeps its order of now."""
        return self.source._pydt_walk() if hasattr(type(self.source), "_pydt_walk") else self.source

    def _batches(self, skip: int) -> Iterator[Batch]:
        first, started = self._first, self._started
        self._first = self._started = None
        if first is not None and skip == 0:
            yield first
        if started is None:
            started = self._indexed_items(skip) if self.indexed else islice(iter(self.source), skip, None)
        elif skip:
            started = islice(started, skip - 1, None)
        for item in started:
            yield self._batch(item)
        yield from self._beside_others()

    def get_state(self, going: bool) -> dict[str, Any]:
        """What a checkpoint keeps: the source's own state, and the order and state of the walk that is going on."""
        get = getattr(self.source, "get_state", None)
        state = {"batches": self.num_batches, "source": get() if callable(get) else None}
        if going and self._walk is not self.source:
            state["walk"] = self._walk.get_state()
        return state | {"order": self._order} if going else state

    def set_state(self, state: Mapping[str, Any], going: bool) -> None:
        """Puts back what `get_state` gave.  Raises ValueError where an epoch going on was of other batches."""
        if going and state.get("batches") != self.num_batches:
            raise ValueError(
                f"batches of an epoch: expected {state.get('batches')}, as in the epoch that is to be continued, "
                f"got {self.num_batches}"
            )
        count = self.num_batches or 0
        self._order = kept_order(state["order"], count, count) if going else None
        own = state.get("source")
        if own is not None and callable(getattr(self.source, "set_state", None)):
            walk = state.get("walk")
            self.source.set_state(own if walk is None else walk)
            self._walk = self._new_walk()
            if walk is not None:  # whose generators are the source's
                self.source.set_state(own)

    def rest(self, taken: int) -> Iterator[Batch]:
        """The batches of an epoch going on after those that were taken; its state was set before.

        Warns where they may be others than those that the epoch would have had.
        """
        name = type(self.source).__name__
        if not self.restarts:
            told = f"a {name} cannot be set to a position: training goes on with the batches that it gives next"
            warnings.warn(told, UserWarning, stacklevel=2)
            return self._batches(0)
        if not self.indexed:
            told = f"a {name} cannot be set to a position: its first {taken} batches are read again and left out"
            warnings.warn(told, UserWarning, stacklevel=2)
        elif self.indexed and not callable(getattr(self.source, "set_state", None)) and _reorders(self.source):
            told = f"{name} changes between epochs and has no get_state() and set_state(state): its batches may differ"
            warnings.warn(told, UserWarning, stacklevel=2)
        return self._batches(taken)

    def first(self) -> Batch:
        """The first batch; the coming epoch starts with it.  Raises ValueError where there is none."""
        if self.indexed:
            if self.num_batches == 0:
                raise ValueError(f"x: expected at least one batch, got an empty {type(self.source).__name__}")
            return self._batch(self._item(self.source, 0))
        if self._first is None:
            self._started = iter(self.source)
            item = next(self._started, None)
            if item is None:
                raise ValueError(f"x: expected at least one batch, got an empty {type(self.source).__name__}")
            self._first = self._batch(item)
        return self._first

    def _indexed_items(self, skip: int) -> Iterator[Any]:
        source = self._walk
        workers = getattr(source, "workers", 1) or 1
        indices: Iterable[int] = _counting(self.num_batches) if self._order is None else self._order.tolist()
        order = islice(indices, skip, None)
        get = partial(self._item, source)
        if workers <= 1 and not getattr(source, "use_multiprocessing", False):
            for index in order:  # a StopIteration of the source's is an error here, and the end in `map`
                yield get(index)
        else:
            queue, processes = (getattr(source, name, None) for name in ("max_queue_size", "use_multiprocessing"))
            begin = None if processes else getattr(source, "_pydt_begin", None)
            if begin is not None and self._reads_shares:
                begin = partial(begin, share=replica.current().share)
            yield from ahead(get, order, workers, 10 if queue is None else queue, bool(processes), begin)

    def _batch(self, item: Any) -> Batch:
        if self.class_weight is not None:
            x, y, weights = _parts(item)
            if weights is not None:
                raise ValueError("expected either class_weight or sample weights in the batches, got both")
            item = x, y, class_weights(to_arrays("y", y), self.class_weight)
        if self.whole:
            arrays = to_arrays("x", item)
            if replica.current().size > 1:
                share = self._share(arrays, None, None)
                share.whole = True
                return share
            return Batch(arrays, None, None, len(tree.flatten(arrays)[0]), whole=True)
        x, y, weights = _parts(item)
        return self._share(to_arrays("x", x), to_arrays("y", y), to_arrays("sample_weight", weights))

    def _item(self, source: Any, index: int) -> Any:
        """A batch by its number; of sources that can, only this process's share is read."""
        read_share = getattr(source, "read_share", None)
        if read_share is None or not self._reads_shares:
            return source[index]
        return read_share(index, replica.current().share)

    @property
    def _reads_shares(self) -> bool:
        """Whether what the source gives is this process's share already."""
        here = replica.current()
        return here.size > 1 and (not here.shards or hasattr(self.source, "read_share"))

    def _share(self, x: Any, y: Any, weights: Any) -> Batch:
        """This process's share of what the source gave."""
        here = replica.current()
        leaves = [leaf for leaf in tree.flatten((x, y, weights)) if leaf is not None]
        if here.size == 1:
            return Batch(x, y, weights, count_samples(x=x, y=y, sample_weight=weights))
        count = len(leaves[0])
        if self._reads_shares:
            part, whole = slice(0, count), None
        else:
            part, whole = here.share(count_samples(x=x, y=y, sample_weight=weights)), count
            if self.first_seen is None:
                self.first_seen = [f"shape {leaf.shape}, {leaf.dtype}, values {sampled(leaf)}" for leaf in leaves]
        size = part.stop - part.start
        offset, total = here.counted(size, whole) or (0, 0)
        structure = (x, y, weights)
        cut = tree.map_structure(lambda leaf: None if leaf is None else _cut(leaf, part), structure)
        windowed = getattr(self.source, "windowed", False)
        self._stand_in = tree.map_structure(lambda leaf: None if leaf is None else _one(leaf, windowed), cut)
        return Batch(cut[0], cut[1], cut[2], size, total, offset)

    def _beside_others(self) -> Iterator[Batch]:
        """Shares without samples, while the data of other processes goes on."""
        here = replica.current()
        while here.size > 1:
            found = here.counted(None, None)
            if found is None:
                return
            x, y, weights = self._stand_in
            yield Batch(x, y, weights, 0, total=found[1], offset=found[0], whole=self.whole)

    def on_epoch_begin(self) -> None:
        _call(self.source, "on_epoch_begin")

    def on_epoch_end(self) -> None:
        _call(self.source, "on_epoch_end")


def _parts(item: Any) -> tuple[Any, Any, Any]:
    """(x, y, sample_weight) of what a source gives.  Raises ValueError for other numbers of parts."""
    parts = tuple(item) if isinstance(item, (tuple, list)) else (item,)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"a batch: expected (x,), (x, y) or (x, y, sample_weight), got {len(parts)} parts")
    return (*parts, None, None)[:3]


def _cut(leaf: np.ndarray, part: slice) -> np.ndarray:
    """The part of an array; where that is empty, one sample that stands in."""
    if part.stop > part.start:
        return leaf[part]
    return leaf[:1] if len(leaf) else np.zeros((1, *leaf.shape[1:]), leaf.dtype)


def _one(leaf: np.ndarray, windowed: bool) -> np.ndarray:
    """A sample that stands in; of images of which a part is there, zeros: they take no memory until they are read."""
    return untouched((1, *leaf.shape[1:]), leaf.dtype) if windowed else leaf[:1].copy()


def _call(source: Any, name: str) -> None:
    method = getattr(source, name, None)
    if callable(method):
        method()


def _reorders(source: Any) -> bool:
    """Whether a data set does something of its own between epochs."""
    names = ("on_epoch_begin", "on_epoch_end")
    return any(getattr(type(source), name, None) not in (None, getattr(PyDataset, name)) for name in names)


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
    Warns of a batch_size that does nothing: Keras says nothing, and scripts give it.
    """
    if x is None:
        raise ValueError("x: expected arrays, or an iterable of batches, got None")
    refuse_kinds("x", x)
    if is_arrays(x):
        return ArrayData(x, y, sample_weight, batch_size, shuffle, class_weight)
    if isinstance(x, (str, bytes)) or not (hasattr(x, "__iter__") or hasattr(x, "__getitem__")):
        raise TypeError(f"x: expected arrays, or an iterable of batches, got {type(x).__name__}")
    for name, value in ("y", y), ("sample_weight", sample_weight):
        if value is not None:
            raise ValueError(f"{name}: expected None where x is a {type(x).__name__}: its batches hold the {name}")
    if batch_size is not None:
        told = f"batch_size: {batch_size} is passed over, as x is a {type(x).__name__}, which makes its own batches"
        warnings.warn(told, UserWarning, stacklevel=4)
    return StreamData(x, shuffle, class_weight)
