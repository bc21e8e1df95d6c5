"""Mean and variance that forward passes gather from what they write."""

from functools import partial

import numpy as np
import pytest

from pydtconv import config
from pydtconv.conv import ConvProblem, workspace_bytes
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run
from tests.marks import slow

PROBLEMS = [
    partial(ConvProblem, 3, 9, 9, 5, 7, 3, padding="same"),
    partial(ConvProblem, 2, 13, 11, 16, 64, 3, padding="same"),
    partial(ConvProblem, 1, 20, 20, 64, 130, 3),
    partial(ConvProblem, 40, 4, 4, 256, 512, 3, padding="same"),  # tiles are kept, filters pass by
    partial(ConvProblem, 5, 56, 56, 8, 24, 3, padding="same"),
    partial(ConvProblem, 4, 8, 8, 33, 70, 1),
    partial(ConvProblem, 600, 1, 1, 64, 300, 1),
    partial(ConvProblem, 2, 23, 23, 3, 50, 7, strides=2, padding="same"),
    partial(ConvProblem, 2, 10, 10, 8, 12, 3, padding="same", groups=2),
    partial(ConvProblem, 2, 1, 6, 3, 4, (3, 1), padding="same"),
    partial(ConvProblem, 1, 3, 3, 4, 5, 3),
    partial(ConvProblem, 2, 9, 9, 20, 12, 1, strides=2),  # pixels that no tap meets
    partial(ConvProblem.of, (2, 5, 9, 7, 20), (3, 3, 3, 20, 36), padding="same"),
    partial(ConvProblem.of, (2, 70, 6), (5, 6, 9), strides=2, padding="same"),
    partial(ConvProblem, 1, 4, 7, 7, 3, (1, 2), padding=((1, 3), (0, 1)), dilation=(3, 1)),  # parts without pixels
    partial(ConvProblem, 1, 25, 250, 3, 5, 3, padding="same", dilation=(2, 1)),  # a block of tiles outside
    partial(ConvProblem, 2, 7, 5, 6, 9, 3, padding="same", dilation=(9, 3)),
    partial(ConvProblem, 3, 9, 70, 19, 19, 3, padding="same", groups=19),  # depthwise
    partial(ConvProblem, 2, 21, 16, 40, 40, 5, strides=2, padding="same", groups=40),
    partial(ConvProblem, 1, 30, 3, 6, 18, (4, 1), padding=((0, 3), (2, 0)), strides=3, groups=6),
    partial(ConvProblem.of, (2, 5, 9, 7, 20), (3, 3, 3, 1, 20), strides=2, padding="same", groups=20),
    partial(ConvProblem.of, (2, 9001, 20), (9, 1, 20), strides=2, padding="same", groups=20),  # rows in parts
    partial(ConvProblem, 1, 4, 1500, 20, 20, 3, padding="same", groups=20),
]
LARGE = (PROBLEMS[3], PROBLEMS[6])
CASES = [
    slow(make, name) if make in LARGE else (make, name)
    for make in PROBLEMS
    for name, row in TABLE.items()
    if row.gathers and row.of_reals and not row.reason(make(), "forward")
]


def gathered(p: ConvProblem, algorithm: str, offset: float):
    """y, its mean and its variance; the workspace is exactly what was asked for."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(p.x_shape).astype(p.dtype)
    w = rng.standard_normal(p.w_shape).astype(p.dtype)
    bias = np.full(p.co, offset, p.dtype)
    y, mean, variance = (np.full(shape, np.nan, p.dtype) for shape in (p.y_shape, p.co, p.co))
    nbytes = workspace_bytes(p, "forward", algorithm)
    memory = np.full(nbytes + 4096, 0xA5, np.uint8)
    run(bind(p, "forward", algorithm, x, w, y, bias=bias, moments=(mean, variance), workspace=memory[:nbytes]))
    assert (memory[nbytes:] == 0xA5).all()
    return y, mean, variance


@pytest.mark.parametrize("threads", [slow(1), 3])
@pytest.mark.parametrize("dtype", ["float32", slow("float64")])
@pytest.mark.parametrize(("make", "algorithm"), CASES)
def test_moments_are_those_of_what_was_written(make, algorithm, dtype, threads):
    """Also where the mean is a thousand times the deviation: nothing cancels."""
    p = make(dtype=dtype)
    config.set_num_threads(threads)
    rounding = 1e-4 if dtype == "float32" else 1e-12
    for offset in (0.0, 1e4):
        y, mean, variance = gathered(p, algorithm, offset)
        rows = y.astype("longdouble").reshape(-1, p.co)
        deviation = rows.std(0).max()
        assert np.abs(mean - rows.mean(0)).max() <= rounding * deviation + np.finfo(dtype).eps * offset
        np.testing.assert_allclose(variance, rows.var(0), rtol=rounding, atol=rounding * deviation**2)
        again = gathered(p, algorithm, offset)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(again, (y, mean, variance), strict=True))


@pytest.mark.parametrize("algorithm", [name for name, row in TABLE.items() if row.gathers and row.of_reals])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_threads_change_no_bit_of_y_and_at_most_the_last_ones_of_its_moments(algorithm, dtype):
    """As the guide to threads says: parts are cut for the threads.  The same number of them gives the same bits."""
    groups, co = (16, 16) if algorithm == "depthwise" else (1, 24)
    p = ConvProblem(6, 40, 37, 16, co, 3, padding="same", groups=groups, dtype=dtype)
    eps = np.finfo(dtype).eps
    results = {}
    for threads in (1, 2, 3, 5, 3):
        config.set_num_threads(threads)
        found = gathered(p, algorithm, 0.0)
        before = results.setdefault(threads, found)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(before, found, strict=True))
    y, mean, variance = results.pop(1)
    for other in results.values():
        assert other[0].tobytes() == y.tobytes()
        assert np.abs(other[1] - mean).max() <= 4 * eps * np.sqrt(variance.max())
        assert np.abs(other[2] / variance - 1).max() <= 4 * eps


def test_refused_where_they_cannot_be_gathered():
    p = ConvProblem(1, 4, 4, 2, 3, 3)
    x, w, y = (np.zeros(shape, "float32") for shape in (p.x_shape, p.w_shape, p.y_shape))
    moments = np.zeros(3, "float32"), np.zeros(3, "float32")
    with pytest.raises(ValueError, match="moments: expected none for forward of im2col"):
        bind(p, "forward", "im2col", x, w, y, moments=moments)
    with pytest.raises(ValueError, match="moments: expected none for backward_data of direct"):
        bind(p, "backward_data", "direct", x, w, y, moments=moments)
    with pytest.raises(ValueError, match=r"variance: expected shape \(3,\), got \(2,\)"):
        bind(p, "forward", "direct", x, w, y, moments=(moments[0], moments[1][:2]))
