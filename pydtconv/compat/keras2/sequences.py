"""Names of `keras.preprocessing.sequence` of Keras 2: pairs of words near each other, windows of a series."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.support.dataset import PyDataset


def skipgrams(
    sequence: Sequence[int],
    vocabulary_size: int,
    window_size: int = 4,
    negative_samples: float = 1.0,
    shuffle: bool = True,
    categorical: bool = False,
    sampling_table: Any = None,
    seed: int | None = None,
) -> tuple[list[list[int]], list[Any]]:
    """Pairs of words, and whether they are in one window (1) or one of them is random (0).

    sequence: numbers of words; 0 is none.  window_size: words on each side.  negative_samples: random pairs for each
    true one.  categorical: labels as [0, 1] and [1, 0].  sampling_table: the chance of each word to be taken.
    seed: of the order; like the rest it is drawn by Python's `random`, whose seed scripts set.
    See Mikolov et al., "Efficient Estimation of Word Representations in Vector Space", 2013.
    Raises ValueError where random words have no vocabulary to come from.
    """
    if negative_samples > 0 and vocabulary_size < 2:
        raise ValueError(f"skipgrams: vocabulary_size: expected 2 or more, got {vocabulary_size!r}")
    words = [int(word) for word in sequence]
    pairs = []
    for i, word in enumerate(words):
        if not word or (sampling_table is not None and sampling_table[word] < random.random()):
            continue
        near = words[max(0, i - window_size) : i] + words[i + 1 : i + window_size + 1]
        pairs += [[word, other] for other in near if other]
    wrong = int(len(pairs) * negative_samples)
    labels: list[Any] = [1] * len(pairs) + [0] * wrong
    if negative_samples > 0:
        firsts = [first for first, _ in pairs]
        random.shuffle(firsts)
        pairs += [[firsts[i % len(firsts)], random.randint(1, vocabulary_size - 1)] for i in range(wrong)]
    if categorical:
        labels = [[1 - label, label] for label in labels]
    if shuffle:
        seed = random.randint(0, 10**7) if seed is None else seed
        for part in (pairs, labels):
            random.seed(seed)
            random.shuffle(part)
    return pairs, labels


def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> np.ndarray:
    """The chance of the word of each rank to be taken, where words are as frequent as Zipf's law has it."""
    rank = np.arange(size)
    rank[:1] = 1
    inverse = rank * (np.log(rank) + 0.577) + 0.5 - 1.0 / (12.0 * rank)
    share = sampling_factor * inverse
    found: np.ndarray = np.minimum(1.0, share / np.sqrt(share))
    return found


class TimeseriesGenerator(PyDataset):
    """Batches (x, y) of windows of a series, each with the target of the element behind it.

    data, targets: one entry for each time, of equal length.  length: times of a window, of which every
    sampling_rate-th is taken.  stride: times between windows.  start_index, end_index: the first and the last time that
    is used.  shuffle: windows are drawn by `np.random`.  reverse: the latest time comes first.
    Raises ValueError for data and targets of unequal lengths, and where no window is left.
    """

    def __init__(
        self,
        data: Any,
        targets: Any,
        length: int,
        sampling_rate: int = 1,
        stride: int = 1,
        start_index: int = 0,
        end_index: int | None = None,
        shuffle: bool = False,
        reverse: bool = False,
        batch_size: int = 128,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if len(data) != len(targets):
            raise ValueError(
                f"TimeseriesGenerator: expected a target for each of {len(data)} times, got {len(targets)}"
            )
        self.data, self.targets, self.length = data, targets, length
        self.sampling_rate, self.stride, self.batch_size = sampling_rate, stride, batch_size
        self.shuffle, self.reverse = shuffle, reverse
        self.start_index = start_index + length
        self.end_index = len(data) - 1 if end_index is None else end_index
        if self.start_index > self.end_index:
            raise ValueError(
                f"TimeseriesGenerator: expected end_index of {self.start_index} or more behind a window of {length}, "
                f"got {self.end_index}"
            )

    def __len__(self) -> int:
        return -(-(self.end_index - self.start_index + 1) // (self.batch_size * self.stride))

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        if self.shuffle:
            rows = np.random.randint(self.start_index, self.end_index + 1, self.batch_size)  # noqa: NPY002
        else:
            span = self.batch_size * self.stride
            first = self.start_index + span * index
            rows = np.arange(first, min(first + span, self.end_index + 1), self.stride)
        x = np.array([self.data[row - self.length : row : self.sampling_rate] for row in rows])
        return x[:, ::-1] if self.reverse else x, np.array([self.targets[row] for row in rows])

    def get_config(self) -> dict[str, Any]:
        """The arguments, data as texts of JSON."""
        plain = ("length", "sampling_rate", "stride", "end_index", "shuffle", "reverse", "batch_size")
        return {
            **{name: json.dumps(np.asarray(getattr(self, name)).tolist()) for name in ("data", "targets")},
            **{name: getattr(self, name) for name in plain},
            "start_index": self.start_index - self.length,
        }

    def to_json(self, **kwargs: Any) -> str:
        """The generator as JSON; kwargs go to `json.dumps`."""
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)


def timeseries_generator_from_json(json_string: str) -> TimeseriesGenerator:
    """The generator that `TimeseriesGenerator.to_json` wrote."""
    config = json.loads(json_string)["config"]
    return TimeseriesGenerator(**{**config, **{name: json.loads(config[name]) for name in ("data", "targets")}})


def table() -> dict[str, Any]:
    """Old names of the module."""
    own = make_sampling_table, skipgrams, timeseries_generator_from_json, TimeseriesGenerator
    return {each.__name__: each for each in own}
