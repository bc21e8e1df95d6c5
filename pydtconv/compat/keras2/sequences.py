"""Names of `keras.preprocessing.sequence` of Keras 2: pairs of words that stand near each other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np


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
    See Mikolov et al., "Efficient Estimation of Word Representations in Vector Space", 2013.
    Raises ValueError where random words have no vocabulary to come from.
    """
    if negative_samples > 0 and vocabulary_size < 2:
        raise ValueError(f"skipgrams: vocabulary_size: expected 2 or more, got {vocabulary_size!r}")
    source = random if seed is None else random.Random(seed)
    words = [int(word) for word in sequence]
    pairs = []
    for i, word in enumerate(words):
        if not word or (sampling_table is not None and sampling_table[word] < source.random()):
            continue
        near = words[max(0, i - window_size) : i] + words[i + 1 : i + window_size + 1]
        pairs += [[word, other] for other in near if other]
    firsts = [first for first, _ in pairs]
    source.shuffle(firsts)
    wrong = int(len(pairs) * negative_samples)
    labels: list[Any] = [1] * len(pairs) + [0] * wrong
    pairs += [[firsts[i % len(firsts)], source.randint(1, vocabulary_size - 1)] for i in range(wrong)]
    if categorical:
        labels = [[1 - label, label] for label in labels]
    if shuffle and pairs:
        both = list(zip(pairs, labels, strict=True))
        source.shuffle(both)
        pairs, labels = ([*part] for part in zip(*both, strict=True))
    return pairs, labels


def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> np.ndarray:
    """The chance of the word of each rank to be taken, where words are as frequent as Zipf's law has it."""
    rank = np.arange(size)
    rank[:1] = 1
    inverse = rank * (np.log(rank) + 0.577) + 0.5 - 1.0 / (12.0 * rank)
    found: np.ndarray = np.minimum(1.0, np.sqrt(sampling_factor * inverse))
    return found


def table() -> dict[str, Any]:
    """Old names of the module."""
    return {"skipgrams": skipgrams, "make_sampling_table": make_sampling_table}
