"""Rows of an array that are gathered late, and a step that reads them."""

from __future__ import annotations

import numpy as np
import pytest

from pydtconv.graph import Rows
from pydtconv.graph.runtime import rows


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("piece", [1, 100, 1 << 20])
def test_rows_are_those_of_the_array(monkeypatch, dtype, piece) -> None:
    monkeypatch.setattr(rows, "PIECE", piece)
    array = np.random.default_rng(0).integers(0, 200, (9, 4, 3)).astype(dtype)
    order = np.array([8, 0, 3, 3, 5])
    found, want = Rows(array, order), array[order]
    assert (found.shape, found.dtype, len(found)) == (want.shape, want.dtype, 5)
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(found[1:3], want[1:3])
    assert np.asarray(found, np.float64).dtype == np.float64
    for target in (np.empty((5, 4, 3), np.float32), np.empty((5, 4, 6), np.float32)[..., ::2]):
        found.copy_into(target)
        np.testing.assert_array_equal(target, want.astype(np.float32))


def test_rows_cannot_be_an_array_without_a_copy() -> None:
    with pytest.raises(ValueError, match="copy=False"):
        Rows(np.zeros((3, 2)), np.array([1])).__array__(copy=False)
