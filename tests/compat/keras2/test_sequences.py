"""Pairs of words of a window."""

import numpy as np
import pytest

from pydtconv.compat.keras2.sequences import make_sampling_table, skipgrams

WORDS = [1, 2, 0, 3, 4, 2]


def windows(words, size):
    return [[a, b] for i, a in enumerate(words) for j, b in enumerate(words) if i != j and abs(i - j) <= size and a * b]


@pytest.mark.parametrize("size", [1, 2, 9])
def test_pairs_are_those_of_a_window(size):
    pairs, labels = skipgrams(WORDS, 9, window_size=size, negative_samples=0, shuffle=False)
    assert pairs == windows(WORDS, size)
    assert labels == [1] * len(pairs)


@pytest.mark.parametrize("categorical", [False, True])
def test_random_pairs_come_beside_true_ones(categorical):
    true = windows(WORDS, 2)
    pairs, labels = skipgrams(WORDS, 9, 2, negative_samples=2.0, categorical=categorical, seed=4)
    assert (pairs, labels) == skipgrams(WORDS, 9, 2, negative_samples=2.0, categorical=categorical, seed=4)
    kinds = [label[1] if categorical else label for label in labels]
    assert len(pairs) == 3 * len(true)
    assert sorted(p for p, kind in zip(pairs, kinds, strict=True) if kind) == sorted(true)
    assert all(0 < b < 9 for _, b in pairs)


def test_empty_and_wrong():
    assert skipgrams([], 9) == ([], [])
    assert skipgrams(WORDS, 9, sampling_table=np.zeros(9)) == ([], [])
    with pytest.raises(ValueError, match="vocabulary_size"):
        skipgrams(WORDS, 1)


def test_frequent_words_are_taken_less_often():
    table = make_sampling_table(10)
    np.testing.assert_allclose(table[:4], [0.00315225, 0.00315225, 0.00547597, 0.00741556], rtol=1e-5)
    assert (np.diff(table[1:]) > 0).all()
