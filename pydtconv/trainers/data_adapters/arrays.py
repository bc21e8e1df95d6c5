"""Batches out of arrays that are whole in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from pydtconv import config, replica, tree
from pydtconv.dtypes import BFLOAT16, real, refuse_kinds
from pydtconv.graph import Rows
from pydtconv.support.random import next_seed
from pydtconv.support.strings import are_strings, fingerprints


@dataclass
class Batch:
    """size samples: inputs x, targets y and sample weights, each an array, a nested structure of arrays, or None.

    Where several processes train, these are one process's share of a batch of `total` samples, from `offset` on.  A
    share of size 0 holds a sample nevertheless, which stands in so that there is something to run, and does not count.
    whole: whether x is what the source gave, of any structure, for a step that a user wrote.
    """

    x: Any
    y: Any
    sample_weight: Any
    size: int
    total: int = -1
    offset: int = 0
    whole: bool = False

    def __post_init__(self) -> None:
        if self.total < 0:
            self.total = self.size


def to_arrays(name: str, data: Any) -> Any:
    """The structure with every leaf as an array; lists of numbers are arrays too, and bfloat16 becomes float32.

    Strings of x become fingerprints.

    Raises ValueError, naming the argument, for leaves that are no arrays of numbers or have no first axis.
    """
    if data is None or (type(data) is np.ndarray and data.ndim and data.dtype.kind in "biuf"):
        return data
    if isinstance(data, (list, tuple, dict)) and not _is_numbers(data):
        if isinstance(data, dict):
            return {key: to_arrays(f"{name}[{key!r}]", part) for key, part in data.items()}
        return tuple(to_arrays(f"{name}[{i}]", part) for i, part in enumerate(data))
    refuse_kinds(name, data)
    array = np.asarray(data)
    if array.dtype.name == BFLOAT16:
        array = array.astype(real(BFLOAT16))
    elif name.startswith("x") and are_strings(array):
        array = fingerprints(array)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected an array of numbers, got {_told(data)} of dtype {array.dtype}")
    if array.ndim == 0:
        raise ValueError(f"{name}: expected an array whose first axis counts samples, got the number {array.item()!r}")
    return array


def _is_numbers(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (bool, int, float, np.number, np.bool_))


def _told(data: Any) -> str:
    return type(data).__name__


def is_arrays(data: Any) -> bool:
    """Whether data is an array, or a nested structure of arrays."""
    if isinstance(data, (list, tuple, dict)):
        return bool(data) and (_is_numbers(data) or all(is_arrays(part) for part in tree.flatten(data)))
    return data is None or (hasattr(data, "__array__") and hasattr(data, "shape"))


def count_samples(**data: Any) -> int:
    """The number of samples of structures of arrays.  Raises ValueError where they differ or there are none."""
    lengths = {}
    for name, structure in data.items():
        if isinstance(structure, np.ndarray):
            lengths[name] = len(structure)
            continue
        leaves = [leaf for leaf in tree.flatten(structure) if leaf is not None]
        for i, leaf in enumerate(leaves):
            lengths[name if len(leaves) == 1 else f"{name}[{i}]"] = len(leaf)
    told = ", ".join(f"{name}: {length}" for name, length in lengths.items())
    if len(set(lengths.values())) > 1:
        for name, structure in data.items():
            if isinstance(structure, tuple) and len(structure) > 1 and len(structure) in lengths.values():
                mend = f"np.stack({name}) makes one array of samples of a single shape"
                raise ValueError(f"{name}: expected an array for each input, got a list of {len(structure)}: {mend}")
        raise ValueError(f"expected data of one length, got samples of {told}")
    if not lengths or 0 in lengths.values():
        raise ValueError(f"expected at least one sample, got {told or 'no data'}")
    return next(iter(lengths.values()))


def split_tail(share: float, x: Any, y: Any, sample_weight: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """(x, y, sample_weight) without and with the last share of the samples.  Raises ValueError where one is empty."""
    if not 0 < share < 1:
        raise ValueError(f"validation_split: expected a number between 0 and 1, got {share!r}")
    if not is_arrays(x):
        raise ValueError(f"validation_split: expected x to be arrays, got {_told(x)}; pass validation_data instead")
    data = (to_arrays("x", x), to_arrays("y", y), to_arrays("sample_weight", sample_weight))
    count = count_samples(x=data[0], y=data[1], sample_weight=data[2])
    at = math.floor(count * (1 - share))
    if at in (0, count):
        raise ValueError(f"validation_split={share!r}: {count} samples are too few to be split so")

    def cut(part: slice) -> tuple[Any, ...]:
        return tuple(tree.map_structure(lambda leaf: None if leaf is None else leaf[part], value) for value in data)

    return cut(slice(0, at)), cut(slice(at, count))


def class_weights(y: Any, weights: Mapping[int, float]) -> np.ndarray:
    """The weight of each sample's class; y holds class numbers (n,) or (n, 1), or one row of scores (n, classes).

    Of each pixel's where y holds class numbers (n, h, w) or (n, h, w, 1), or scores (n, h, w, classes).
    """
    if not isinstance(weights, Mapping):
        raise ValueError(f"class_weight: expected a dict of weights by the classes' numbers, got {weights!r}")
    if not all(isinstance(each, Real) for each in weights):
        raise ValueError(f"class_weight: expected the classes' numbers as keys, got {list(weights)}")
    leaves = tree.flatten(y)
    if len(leaves) != 1 or leaves[0] is None:
        raise ValueError(f"class_weight: expected targets of one output, got {len(leaves)}")
    labels = np.asarray(leaves[0])
    of_pixels = labels.ndim > 2 and labels.dtype.kind in "biu" and not _is_one_hot(labels)
    if labels.ndim > 1 and not of_pixels:
        labels = labels.argmax(-1) if labels.shape[-1] != 1 else labels[..., 0]
    labels = np.rint(labels).astype(np.int64)
    table, places = np.unique(labels, return_inverse=True)
    values = np.array([weights.get(int(label), 1.0) for label in table], config.floatx())
    return values[places.reshape(labels.shape)]


def _is_one_hot(labels: np.ndarray) -> bool:
    return bool(labels.size and labels.min() >= 0 and (labels.sum(-1) == 1).all())


class ArrayData:
    """Batches of batch_size samples (the last one may be smaller), in the order of the arrays or shuffled.

    shuffle: True (samples), "batch" (batches), or False.  Shuffled batches are gathered into the same buffers each
    time: a batch is valid until the next one.  late: whether the inputs of shuffled samples are `Rows`, for steps that
    gather them straight into their arena.
    """

    restarts = True
    late = False
    class_names: tuple[str, ...] = ()

    def __init__(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        batch_size: int | None = None,
        shuffle: bool | str = False,
        class_weight: Mapping[int, float] | None = None,
    ) -> None:
        self.x, self.y = to_arrays("x", x), to_arrays("y", y)
        weights = to_arrays("sample_weight", sample_weight)
        if class_weight is not None:
            if weights is not None:
                raise ValueError("expected either class_weight or sample_weight, got both")
            if y is None:
                raise ValueError("class_weight: expected targets y, got None")
            weights = class_weights(self.y, class_weight)
        self.sample_weight = weights
        self.samples = count_samples(x=self.x, y=self.y, sample_weight=weights)
        self.batch_size = 32 if batch_size is None else batch_size
        if not isinstance(self.batch_size, (int, np.integer)) or self.batch_size < 1:
            raise ValueError(f"batch_size: expected an integer of 1 or more, got {batch_size!r}")
        self.num_batches: int | None = -(-self.samples // self.batch_size)
        self.shuffle = shuffle
        self._structure = (self.x, self.y, self.sample_weight)
        self._is_flat = not any(map(tree.is_nested, self._structure))
        self._leaves = list(self._structure) if self._is_flat else tree.flatten(self._structure)
        self._buffers: list[np.ndarray | None] = []
        self._order: np.ndarray | None = None

    def epoch(self) -> Iterator[Batch]:
        """The batches of one epoch; each call shuffles anew."""
        self._order = self._drawn_order()
        return self._batches(0)

    def _drawn_order(self) -> np.ndarray | None:
        """The samples' order, or that of the batches' first samples where those are shuffled; None as they lie."""
        if self.shuffle == "batch":
            starts = np.arange(0, self.samples, self.batch_size)
            np.random.default_rng(next_seed()).shuffle(starts[: self.samples // self.batch_size])
            return starts
        return np.random.default_rng(next_seed()).permutation(self.samples) if self.shuffle else None

    def _batches(self, skip: int) -> Iterator[Batch]:
        order = self._order
        starts: Any = range(0, self.samples, self.batch_size)
        if self.shuffle == "batch" and order is not None:
            starts, order = order.tolist(), None
        for start in starts[skip:]:
            yield self._share(start, min(start + self.batch_size, self.samples), order)

    def get_state(self, going: bool) -> dict[str, Any]:
        """What a checkpoint keeps, with the order of the epoch that is going on, where one is."""
        state = {"samples": self.samples, "batch_size": self.batch_size, "shuffle": self.shuffle}
        return state | {"order": self._order} if going else state

    def set_state(self, state: Mapping[str, Any], going: bool) -> None:
        """Puts back what `get_state` gave.  Raises ValueError where an epoch going on was of other batches."""
        for name in ("samples", "batch_size", "shuffle") if going else ():
            if state.get(name) != getattr(self, name):
                raise ValueError(
                    f"{name}: expected {state.get(name)!r}, as in the epoch that is to be continued, got "
                    f"{getattr(self, name)!r}"
                )
        count = -(-self.samples // self.batch_size) if self.shuffle == "batch" else self.samples
        self._order = kept_order(state["order"], count, self.samples) if going else None

    def rest(self, taken: int) -> Iterator[Batch]:
        """The batches of an epoch going on after those that were taken; its state was set before."""
        return self._batches(taken)

    def first(self) -> Batch:
        """The first samples, in the order of the arrays."""
        return self._share(0, min(self.batch_size, self.samples), None)

    def _share(self, start: int, stop: int, order: np.ndarray | None) -> Batch:
        """This process's share of a batch; only that is read."""
        share = replica.current().share(stop - start)
        own = slice(start + share.start, start + share.stop) if share.stop > share.start else slice(start, start + 1)
        if order is None:
            leaves = self._slices(own.start, own.stop)
        elif self.late:
            inputs = [None if leaf is None else Rows(leaf, order[own]) for leaf in tree.flatten(self.x)]
            leaves = inputs + self._gathered(order[own], len(inputs))
        else:
            leaves = self._gathered(order[own])
        x, y, sample_weight = leaves if self._is_flat else tree.pack_sequence_as(self._structure, leaves)
        return Batch(x, y, sample_weight, share.stop - share.start, stop - start, share.start)

    def _slices(self, start: int, stop: int) -> list[Any]:
        return [None if leaf is None else leaf[start:stop] for leaf in self._leaves]

    def _gathered(self, order: np.ndarray, skip: int = 0) -> list[Any]:
        """Samples of the leaves, without the first `skip` ones."""
        leaves = self._leaves[skip:]
        if len(self._buffers) != len(leaves):
            self._buffers = [
                None if leaf is None else np.empty((min(self.batch_size, self.samples), *leaf.shape[1:]), leaf.dtype)
                for leaf in leaves
            ]
        result: list[Any] = []
        for leaf, buffer in zip(leaves, self._buffers, strict=True):
            if buffer is None:
                result.append(None)
            else:
                # "clip" lets take write to the buffer without one of its own; every index is in range
                result.append(np.take(leaf, order, axis=0, out=buffer[: len(order)], mode="clip"))
        return result

    def not_finite(self) -> str:
        """Which of the samples is the first with NaN or infinity; "" where there is none."""
        for name, structure in (("x", self.x), ("y", self.y), ("sample_weight", self.sample_weight)):
            for leaf in tree.flatten(structure):
                for i in range(self.samples if leaf is not None and leaf.dtype.kind == "f" else 0):
                    if not np.isfinite(leaf[i]).all():
                        return f"sample {i} of {name} holds NaN or infinity"
        return ""

    def on_epoch_begin(self) -> None:
        """Nothing to prepare."""

    def on_epoch_end(self) -> None:
        """Nothing to put away."""


def kept_order(order: Any, count: int, end: int) -> np.ndarray | None:
    """The order that a checkpoint has kept: `count` integers from 0 to end - 1, or None.  Raises ValueError."""
    if order is None:
        return None
    array = np.asarray(order)
    if array.dtype.kind not in "iu" or array.shape != (count,) or (count and not 0 <= array.min() <= array.max() < end):
        raise ValueError(f"order of an epoch: expected {count} numbers below {end}, got {array.dtype} {array.shape}")
    return array
