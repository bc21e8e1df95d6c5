"""Filters along rows and columns, beside products with the whole matrices in float64."""

import numpy as np
import pytest

from pydtconv import config
from pydtconv._ext import image
from pydtconv.dtypes import from_bits, to_bits

KINDS = ("any", "neighbours alike", "one tap", "empty rows", "full")


def matrix(kind: str, rows: int, extent: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = np.zeros((rows, extent))
    for i in range(rows):
        at = i * (extent - 1) // max(rows - 1, 1)
        low, high = {"full": (0, extent), "one tap": (at, at + 1)}.get(kind, (max(at - 2, 0), at + 3))
        found[i, low:high] = rng.uniform(0.5, 1, min(high, extent) - low)
        if kind == "neighbours alike":
            found[i] = sum((k + 1) * (np.arange(extent) == i + k - 2) for k in range(5))
        if kind == "empty rows" and i % 3 != 1:
            found[i] = 0
    return found


def band(matrix: np.ndarray, dtype: str) -> image.Band:
    rows, extent = matrix.shape
    starts = np.array([next(iter(np.flatnonzero(row)), 0) for row in matrix], "int64")
    counts = np.array([np.ptp(np.flatnonzero(row)) + 1 if row.any() else 0 for row in matrix], "int64")
    weights = np.zeros((rows, max(counts)), dtype)
    for i, (start, count) in enumerate(zip(starts, counts, strict=True)):
        weights[i, :count] = matrix[i, start : start + count]
    same = [i for i in range(1, rows) if (weights[i] == weights[i - 1]).all() and starts[i] == starts[i - 1] + 1]
    run = [i for k, i in enumerate(same) if i == same[0] + k and counts[i] == counts[same[0] - 1]]
    return image.Band(extent, weights, starts, counts, (run[0] - 1, run[-1] + 1) if run else (0, 0))


def filtered(rows, columns, x: np.ndarray, y: np.ndarray, accumulate: bool = False) -> None:
    """In place, on (n, h, w, c) that may be channel slices."""
    dtype = "float64" if x.dtype == np.float64 else "float32"
    bands = [None if each is None else band(each, dtype) for each in (rows, columns)]
    pixels = [np.lib.stride_tricks.as_strided(a, (a[..., 0].size, a.shape[-1]), a.strides[2:]) for a in (x, y)]
    name = "bfloat16" if x.dtype == np.uint16 else dtype
    memory = np.empty(image.bands_workspace(name, bands[1], x.shape[2], x.shape[3]) or 1, np.uint8)
    image.bind_bands(*bands, accumulate, *x.shape[:3], *pixels, memory)()


def product(rows, columns, x: np.ndarray) -> np.ndarray:
    y = x if rows is None else np.einsum("ik,nklc->nilc", rows, x)
    return y if columns is None else np.einsum("jl,nilc->nijc", columns, y)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("c", [1, 2, 3, 4, 7, 16, 19])
def test_bands_are_products_with_their_matrices(c, dtype):
    rng = np.random.default_rng(c)
    shape = (2, 9, 13, c)
    whole = rng.standard_normal((*shape[:3], c + 5))
    whole = to_bits(whole) if dtype == "bfloat16" else whole.astype(dtype)
    tolerance = {"float32": 2e-6, "float64": 1e-14, "bfloat16": 1e-2}[dtype]

    def reals(a: np.ndarray) -> np.ndarray:
        return np.asarray(from_bits(a) if dtype == "bfloat16" else a, "float64")

    for number, kind in enumerate(KINDS):
        for rows, columns in ((8, 21), (9, None), (None, 13), (14, 5)):
            down = None if rows is None else matrix(kind, rows, 9, number)
            along = None if columns is None else matrix(kind, columns, 13, number)
            for x in (np.ascontiguousarray(whole[..., :c]), whole[..., 2 : c + 2]):
                want = product(down, along, reals(x))
                room = np.zeros((*want.shape[:3], c + 3), whole.dtype)
                for y in (room[..., 1 : c + 1], np.zeros(want.shape, whole.dtype)):
                    for accumulate in (False, True):
                        filtered(down, along, x, y, accumulate)
                        wanted = want * (1 + accumulate)
                        np.testing.assert_allclose(reals(y), wanted, tolerance, tolerance * 20, err_msg=kind)
                assert not room[..., 0].any()
                assert not room[..., c + 1 :].any()


def test_bits_do_not_depend_on_the_threads():
    x = np.random.default_rng(0).standard_normal((3, 97, 113, 3)).astype("float32")
    rows, columns = matrix("any", 70, 97, 0), matrix("neighbours alike", 113, 113, 0)
    found = []
    for threads in (1, 2, 3):
        config.set_num_threads(threads)
        found.append(np.zeros((3, 70, 113, 3), "float32"))
        filtered(rows, columns, x, found[-1])
    assert all((each == found[0]).all() for each in found)


def test_what_lies_outside_of_the_weights_is_not_read():
    x = np.ones((1, 4, 6, 3), "float32")
    x[0, 3, :, :], x[0, :, 0, 1] = np.nan, np.inf
    y = np.zeros((1, 2, 2, 3), "float32")
    filtered(np.array([[1.0, 1, 0, 0], [0, 0, 0, 0]]), np.array([[0.0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 2]]), x, y)
    assert (y[0, 0] == [[4, 4, 4], [4, 4, 4]]).all()
    assert not y[0, 1].any()


def test_what_contradicts_itself_is_refused():
    x, y = np.zeros((6, 3), "float32"), np.zeros((4, 3), "float32")
    columns = band(matrix("any", 2, 3, 0), "float32")
    memory = np.empty(image.bands_workspace("float32", columns, 3, 3), np.uint8)
    with pytest.raises(ValueError, match="the workspace is smaller"):
        image.bind_bands(None, columns, False, 1, 2, 3, x, y, memory[:-1])()
    with pytest.raises(ValueError, match="contradict each other"):
        image.bind_bands(columns, None, False, 1, 2, 3, x, y, memory)()
