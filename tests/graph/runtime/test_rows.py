"""Rows of an array that are gathered late, and a step that reads them."""

from __future__ import annotations

import numpy as np
import pytest

from pydtconv import config
from pydtconv._ext import image
from pydtconv.dtypes import from_bits, in_memory, to_bits
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


@pytest.mark.parametrize("dtype", ["bool", *image.SAMPLES, "float16"])
def test_samples_of_all_dtypes_become_images(monkeypatch, dtype) -> None:
    """As NumPy casts them, dense or not, few and many, whatever the threads."""
    monkeypatch.setattr(rows, "_FEW", 4096)
    rng = np.random.default_rng(0)
    whole = (rng.standard_normal((7, 50, 41, 2)) * 90).astype(dtype)
    order = np.array([6, 0, 3, 3, 5])
    for array in (whole, whole[:, :3], whole[..., 1:], whole[0, 0, 0, 0], whole[:0]):
        values = [array, Rows(array, order)] if len(array.shape) and len(array) else [array]
        for value in values:
            want = np.asarray(value)
            for name in ("float32", "float64", "bfloat16", "int32"):
                for threads in (1, 2):
                    config.set_num_threads(threads)
                    target = np.empty(want.shape, in_memory(name))
                    rows.copy_samples(value, target, name)
                    found = from_bits(target) if name == "bfloat16" else target
                    exact = from_bits(to_bits(want.astype("float32"))) if name == "bfloat16" else want.astype(name)
                    np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_samples_of_another_order_of_bytes(dtype) -> None:
    values = np.random.default_rng(0).normal(size=(600, 700)).astype("float32")
    found = [np.empty(values.shape, "uint16" if dtype == "bfloat16" else dtype) for _ in range(2)]
    for given, target in zip((values, values.astype(values.dtype.newbyteorder())), found, strict=True):
        rows.copy_samples(given, target, dtype)
    np.testing.assert_array_equal(*found)
