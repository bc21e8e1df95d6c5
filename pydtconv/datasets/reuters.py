"""Reuters: 11228 news as numbers of words, each of one of 46 topics (D. Lewis, 1987)."""

from __future__ import annotations

import numpy as np

from pydtconv.datasets import word_numbers
from pydtconv.datasets.tables import Split, load, shuffled

_TOPICS = (
    "cocoa grain veg-oil earn acq wheat copper housing money-supply coffee sugar trade reserves ship "
    "cotton carcass crude nat-gas cpi money-fx interest gnp meal-feed alum oilseed gold tin "
    "strategic-metal livestock retail ipi iron-steel rubber heat jobs lei bop zinc orange pet-chem dlr "
    "gas silver wpi hog lead"
)


def load_data(
    path: str = "reuters.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    test_split: float = 0.2,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int | None = 3,
) -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)`: x object (n,) of lists of numbers, y int64 (n,), 0 to 45.

    num_words, skip_top: which words stay, by how often they are there; others are oov_char.  maxlen: longer texts go.
    Raises FileNotFoundError that says where to put which file, and ValueError for a damaged one.
    """
    digest = "d6586e694ee56d7a4e65172e12b3e987c03096cb01eab99753921ef915959916"
    x, y = word_numbers.read("Reuters", path, digest, ("x", "y"))
    x, y = shuffled(np.random.RandomState(seed), x, y)
    lists, topics = word_numbers.numbered(x, y, start_char, index_from, maxlen)
    return load(word_numbers.limited(lists, num_words, skip_top, oov_char), np.asarray(topics), test_split)


def get_word_index(path: str = "reuters_word_index.json") -> dict[str, int]:
    """The number of each word, to which `load_data` adds index_from."""
    return word_numbers.word_index("Reuters", path, "4d44cc38712099c9e383dc6e5f11a921")


def get_label_names() -> tuple[str, ...]:
    """The names of the topics."""
    return tuple(_TOPICS.split())
