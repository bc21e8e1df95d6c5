"""IMDB: 50000 reviews of films as numbers of words, 1 where they are kind (A. Maas et al., 2011)."""

from __future__ import annotations

import numpy as np

from pydtconv.datasets import word_numbers
from pydtconv.datasets.tables import Split, shuffled


def load_data(
    path: str = "imdb.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int | None = 3,
) -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)`: x object (n,) of lists of numbers, y int64 (n,), 25000 of each part.

    num_words, skip_top: which words stay, by how often they are there; others are oov_char.  maxlen: longer texts go.
    Raises FileNotFoundError that says where to put which file, and ValueError for a damaged one.
    """
    digest = "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f"
    x_train, y_train, x_test, y_test = word_numbers.read(
        "IMDB", path, digest, ("x_train", "y_train", "x_test", "y_test")
    )
    parts, rng = [], np.random.RandomState(seed)
    for x, y in ((x_train, y_train), (x_test, y_test)):
        mixed, labels = shuffled(rng, x, y)
        parts.append(word_numbers.numbered(mixed, labels, start_char, index_from, maxlen))
    lists = word_numbers.limited(parts[0][0] + parts[1][0], num_words, skip_top, oov_char)
    count = len(parts[0][0])
    return (lists[:count], np.asarray(parts[0][1])), (lists[count:], np.asarray(parts[1][1]))


def get_word_index(path: str = "imdb_word_index.json") -> dict[str, int]:
    """The number of each word, to which `load_data` adds index_from."""
    return word_numbers.word_index("IMDB", path, "bfafd718b763782e994055a2d397834f")
