"""Maximum pooling's kernel: which of equal maxima and of several NaN it takes, whatever kernel a window has."""

import numpy as np
import pytest

from pydtconv._ext import pooling, runtime

#: id, ih, iw, taps, stride, padding before, channels
CASES = [
    (1, 7, 6, 3, 1, 1, 19),
    (1, 8, 9, 3, 2, 1, 70),
    (1, 9, 8, 3, 2, 0, 16),
    (1, 7, 5, 2, 1, 0, 33),
    (1, 6, 7, 2, 2, 0, 64),
    (1, 8, 8, 2, 3, 1, 5),
    (1, 9, 9, 3, 4, 2, 3),
    (2, 5, 5, 3, 1, 1, 17),
    (1, 9, 9, 4, 2, 1, 20),
]


def values_with_ties(rng: np.random.Generator, shape: tuple[int, ...], nan: bool) -> np.ndarray:
    x = rng.integers(-2, 3, shape).astype(np.float64)
    x[rng.random(shape) < 0.1] = -0.0
    x[rng.random(shape) < 0.03] = -np.inf
    if nan:
        x[rng.random(shape) < 0.01] = np.nan
    return x


def bits_of(x: np.ndarray, dtype: str) -> np.ndarray:
    """The elements of images in memory; those of bfloat16, whose numbers here are exact, are its bits."""
    if dtype == "bfloat16":
        return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return x.astype(dtype)


def expected(
    x: np.ndarray, dy: np.ndarray, taps: int, stride: int, before: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y, positions and dx, window by window; the first maximum, and the last NaN."""
    ih, iw = x.shape[2:4]
    oh, ow = dy.shape[2:4]
    y, positions, dx = np.empty(dy.shape), np.zeros(dy.shape, np.uint8), np.zeros(x.shape)
    for i, j in np.ndindex(oh, ow):
        best, place = np.full(y[:, :, i, j].shape, -np.inf), np.full(y[:, :, i, j].shape, -1)
        for p, q in np.ndindex(taps, taps):
            h, w = i * stride - before + p, j * stride - before + q
            if 0 <= h < ih and 0 <= w < iw:
                value = x[:, :, h, w]
                greater = (place < 0) | (value > best) | np.isnan(value)
                best, place = np.where(greater, value, best), np.where(greater, p * taps + q, place)
        y[:, :, i, j], positions[:, :, i, j] = best, place
        for p, q in np.ndindex(taps, taps):
            h, w = i * stride - before + p, j * stride - before + q
            if 0 <= h < ih and 0 <= w < iw:
                dx[:, :, h, w] += np.where(place == p * taps + q, dy[:, :, i, j], 0)
    return y, positions, dx


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("nan", [False, True], ids=["numbers", "nan"])
def test_positions(case, dtype, nan):
    depth, ih, iw, taps, stride, before, c = case
    n, oh, ow = 3, (ih + 2 * before - taps) // stride + 1, (iw + 2 * before - taps) // stride + 1
    rng = np.random.default_rng(1)
    x, dy = values_with_ties(rng, (n, depth, ih, iw, c), nan), rng.integers(-8, 9, (n, depth, oh, ow, c)) * 1.0
    y, positions, dx = expected(x, dy, taps, stride, before)
    window = pooling.PoolWindow(n, ih, iw, c, oh, ow, taps, taps, stride, stride, before, before, depth, depth, 1, 1, 0)

    def rows(a: np.ndarray, beside: int) -> np.ndarray:
        """As rows that lie apart, of a wider array."""
        wide = np.full((a.size // c, c + beside), np.nan)
        wide[:, :c] = a.reshape(-1, c)
        return bits_of(wide, dtype)[:, :c]

    before_threads = runtime.get_num_threads()
    try:
        for threads, beside in ((1, 0), (2, 5)):
            runtime.set_num_threads(threads)
            to, found = rows(np.full(y.shape, np.nan), beside), np.full(y.size, 255, np.uint8)
            pooling.bind_max_pool(window, rows(x, beside), to, found, 1)()
            np.testing.assert_array_equal(to, rows(y, 0))
            np.testing.assert_array_equal(found, positions.ravel())
            pooling.bind_max_pool(window, rows(x, beside), to, None, 1)()
            np.testing.assert_array_equal(to, rows(y, 0))
            for accumulate in (False, True):
                gradient = rows(np.full(dx.shape, 1.0 if accumulate else np.nan), beside)
                pooling.bind_max_pool_backward(window, rows(dy, beside), found, 1, accumulate, gradient)()
                np.testing.assert_array_equal(gradient, rows(dx + accumulate, 0))
    finally:
        runtime.set_num_threads(before_threads)
