"""Sums of rows; counters; bfloat16: every rounding, special values, sums."""

import numpy as np
import pytest

from pydtconv._ext import wire


def narrowed(x):
    y = np.empty(x.size, np.uint16)
    wire.to_bfloat16(x, y)
    return y


def widened(x, dtype="float32"):
    y = np.empty(x.size, dtype)
    wire.from_bfloat16(x, y)
    return y


def test_every_bfloat16_survives():
    every = np.arange(1 << 16, dtype=np.uint16)
    values = widened(every)
    numbers = ~np.isnan(values)
    np.testing.assert_array_equal(narrowed(values)[numbers], every[numbers])
    assert np.isnan(widened(narrowed(values))[~numbers]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounds_to_the_nearest_and_ties_to_even(dtype):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=50_001) * 10.0 ** rng.integers(-30, 30, 50_001)).astype("float32").astype(dtype)
    lower = widened((x.astype("float32").view(np.uint32) >> 16).astype(np.uint16), "float64")
    upper = widened(((x.astype("float32").view(np.uint32) >> 16) + 1).astype(np.uint16), "float64")
    found = widened(narrowed(x), "float64")
    assert (np.abs(found - x) == np.minimum(np.abs(lower - x), np.abs(upper - x))).all()
    tie = np.array([1 + 2**-8, 1 + 3 * 2**-8], dtype)
    np.testing.assert_array_equal(widened(narrowed(tie)), [1, 1 + 2**-6])
    assert np.isinf(widened(narrowed(np.array([3.4e38, np.inf], dtype)))).all()


@pytest.mark.parametrize("n", [1, 2047, 2049, 70_000])
def test_sum_is_rounded_once(n):
    rows = np.stack([narrowed(np.random.default_rng(i).normal(size=n)) for i in range(5)])
    found = np.empty(n, np.uint16)
    wire.sum_bfloat16(rows, found)
    total = np.zeros(n, np.float32)
    for row in rows:
        total += widened(row)
    np.testing.assert_array_equal(found, narrowed(total))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2047, 2049, 70_000])
@pytest.mark.parametrize("into", [None, 0, 2])
def test_rows_are_summed_in_their_order(dtype, n, into):
    rows = np.random.default_rng(0).normal(size=(3, n + 5)).astype(dtype)
    expected = rows[0, 5:] + rows[1, 5:] + rows[2, 5:]
    found = np.empty(n, dtype) if into is None else rows[into, 5:]
    wire.sum_rows(rows[:, 5:], found)
    np.testing.assert_array_equal(found, expected)


def test_the_least_counter():
    counters = np.zeros((3, 8), np.int64)
    for row, value in enumerate([7, 5, 6]):
        wire.publish(counters, row, 2, value)
    assert wire.least(counters, 2) == 5
    assert wire.least(counters, 1) == 0
    np.testing.assert_array_equal(counters[:, 2], [7, 5, 6])


def test_lengths_are_checked():
    with pytest.raises(ValueError, match="expected 4 elements as the rows"):
        wire.sum_rows(np.zeros((2, 4), "float32"), np.zeros(3, "float32"))
    with pytest.raises(ValueError, match="got 3"):
        wire.sum_bfloat16(np.zeros((2, 4), np.uint16), np.zeros(3, np.uint16))
    with pytest.raises(ValueError, match="one row or more"):
        wire.sum_rows(np.zeros((0, 4), "float32"), np.zeros(4, "float32"))
    with pytest.raises(ValueError, match="expected contiguous rows"):
        wire.sum_rows(np.zeros((2, 8), "float32")[:, ::2], np.zeros(4, "float32"))
    with pytest.raises(IndexError):
        wire.publish(np.zeros((3, 8), np.int64), 3, 0, 1)
    with pytest.raises(ValueError, match="expected 3 elements"):
        wire.to_bfloat16(np.zeros(3, "float32"), np.zeros(2, np.uint16))
