"""`FileBatches`: batches of what is read from files, one file a sample."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.support.dataset import PyDataset, Walked
from pydtconv.support.random import next_seed
from pydtconv.support.workers import Submit, ahead, at_once

Share = Callable[[int], slice]


class FileBatches(Walked):
    """Batches (x, y) of files, y by label_mode, or x alone; `_begin` of a subclass reads x.

    class_names: names by number, None without labels.  file_paths: the files.  With shuffle, each epoch has an order of
    its own.  settings: all else that the samples depend on.
    """

    _pydt_order = property(lambda self: self._order)  # which all processes must have alike
    _pydt_class_names = property(lambda self: self.class_names or ())

    def __init__(
        self,
        file_paths: Sequence[Path],
        numbers: np.ndarray | None,
        class_names: list[str],
        label_mode: str | None,
        batch_size: int | None,
        shuffle: bool,
        seed: int | None,
        workers: int,
        settings: tuple[Any, ...],
    ) -> None:
        self._single = batch_size is None
        batch_size = 1 if batch_size is None else batch_size
        for name, value in (("batch_size", batch_size), ("workers", workers)):
            if value < 1:
                raise ValueError(f"{name}: expected an integer of 1 or more, got {value!r}")
        super().__init__(workers=workers, max_queue_size=4)
        self.file_paths, self.class_names = [str(path) for path in file_paths], class_names or None
        self.batch_size = batch_size
        self._numbers, self._label_mode, self._settings = numbers, label_mode, settings
        self._order = np.arange(len(file_paths))
        self._random = np.random.default_rng(next_seed() if seed is None else seed) if shuffle else None
        self.on_epoch_end()

    def __len__(self) -> int:
        return -(-len(self._order) // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        """An epoch for whoever walks through by himself; the next one has another order."""
        walk, order = self._pydt_walk(), range(len(self))
        several = ahead(walk.__getitem__, order, self.workers, self.max_queue_size, begin=walk._pydt_begin)
        yield from PyDataset.__iter__(walk) if self.workers == 1 else several
        self.on_epoch_end()

    def on_epoch_end(self) -> None:
        """Shuffles for the next epoch."""
        if self._random is not None:
            self._order = self._random.permutation(len(self._order))

    def get_state(self) -> dict[str, Any]:
        """What a checkpoint keeps: the order of a walk that begins and the generator of those to come."""
        return {"order": self._order, "random": None if self._random is None else self._random.bit_generator.state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Puts back what `get_state` gave.  Raises ValueError where it is of another number of files."""
        if len(state["order"]) != len(self._order):
            raise ValueError(f"expected {len(state['order'])} files, as there were, got {len(self._order)}")
        if (state["random"] is None) != (self._random is None):
            raise ValueError(f"shuffle: expected {self._random is None}, as it was, got {self._random is not None}")
        order = np.asarray(state["order"])
        if order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), np.arange(len(order))):
            raise ValueError(f"order: expected each number below {len(order)} once, got {order!r:.100}")
        self._order = order
        if self._random is not None:
            self._random.bit_generator.state = state["random"]

    def digest(self) -> str:
        """Tells data sets of other files, classes or settings from this one; folders above those of classes may differ.

        Of many files, 4096 from the first to the last count.
        """
        chosen = np.unique(np.linspace(0, len(self.file_paths) - 1, 4096).astype(np.int64))
        names = ["/".join(Path(self.file_paths[i]).parts[-2:]) for i in chosen]
        numbers = None if self._numbers is None else self._numbers[chosen].tolist()
        told = repr((len(self.file_paths), names, numbers, self.class_names, self._label_mode, *self._settings))
        return hashlib.blake2b(told.encode(), digest_size=8).hexdigest()

    def __getitem__(self, index: int) -> Any:
        """One batch.  Raises ValueError that names a bad file, or all of them where none of a batch could be read."""
        return self.read_share(index, None)

    def read_share(self, index: int, share: Share | None) -> Any:
        """The part of a batch that `share` says, given the size of the batch; only its files are read.

        It may be empty, as it may where all of its files are bad and left out.
        """
        if self.workers == 1:
            return self._pydt_begin(index, at_once, share)()
        with ThreadPoolExecutor(self.workers) as pool:
            return self._pydt_begin(index, pool.submit, share)()

    def _begin(self, index: int, files: list[str], submit: Submit, share: Share | None) -> Callable[[], Any]:
        """Begins to read files of a batch; what it returns gives x, and the numbers of the files that could be read."""
        raise NotImplementedError

    def _pydt_begin(self, index: int, submit: Submit, share: Share | None = None) -> Callable[[], Any]:
        """Gives the files of a batch, or of a share of it, to workers; what it returns waits for them."""
        chosen = self._order[index * self.batch_size : (index + 1) * self.batch_size]
        chosen = chosen if share is None else chosen[share(len(chosen))]
        read = self._begin(index, [self.file_paths[number] for number in chosen], submit, share)

        def batch() -> Any:
            x, kept = read()
            made = [x]
            if self._numbers is not None:
                made.append(self._targets(self._numbers[chosen[kept]]))
            if self._single and share is None:
                made = [part[0] for part in made]
            return made[0] if len(made) == 1 else tuple(made)

        return batch

    def _targets(self, numbers: np.ndarray) -> np.ndarray:
        if self._label_mode == "categorical":
            return np.eye(len(self.class_names or ()), dtype=np.float32)[numbers]
        return numbers.astype(np.float32)[:, None] if self._label_mode == "binary" else numbers.astype(np.int32)
