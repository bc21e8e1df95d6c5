"""Arithmetic of images with a few numbers for each pixel, where many short rows make one span."""

import numpy as np
import pytest

from pydtconv import config, dtypes
from pydtconv.kernels.cpu.arithmetic import bind_binary, bind_binary_backward

SHAPES = {
    "an image": ((2, 70, 41, 3), (1, 1, 1, 3)),
    "a row of each image": ((3, 50, 47, 5), (3, 1, 1, 5)),
    "a row of each line": ((4, 900, 2), (4, 1, 2)),
    "a number of each image": ((3, 999, 7), (3, 1, 1)),
    "few rows": ((6, 5, 3), (6, 1, 3)),
    "the longest row": ((2, 400, 64), (1, 1, 64)),
}
ROUNDING = {"float64": 1e-15, "float32": 2e-7, "bfloat16": 2**-8}


def numbers(rng, shape, dtype):
    """As they are in memory, and in float64."""
    values = rng.uniform(0.5, 2, shape).astype("float64" if dtype == "float64" else "float32")
    stored = dtypes.to_bits(values) if dtype == "bfloat16" else values
    return stored, exactly(stored)


def exactly(stored):
    return (dtypes.from_bits(stored) if stored.dtype == np.uint16 else stored).astype("float64")


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", list(ROUNDING))
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=list(SHAPES))
def test_rows_that_repeat(shapes, dtype, threads):
    """Forward, also in place of what is read, and a gradient that is added to what was there."""
    config.set_num_threads(threads)
    rng = np.random.default_rng(0)
    (a, exact_a), (b, exact_b) = (numbers(rng, shape, dtype) for shape in shapes)
    for kind, want in (("subtract", exact_a - exact_b), ("divide", exact_a / exact_b), ("multiply", exact_a * exact_b)):
        y, place = np.empty_like(a), a.copy()
        bind_binary(kind, a, b, y)()
        bind_binary(kind, place, b, place)()
        np.testing.assert_allclose(exactly(y), want, rtol=ROUNDING[dtype], atol=ROUNDING[dtype])
        np.testing.assert_array_equal(place, y)
    dy, exact_dy = numbers(rng, shapes[0], dtype)
    dx, before = numbers(rng, shapes[0], dtype)
    bind_binary_backward("multiply", 0, dy, (a, b, None), dx, accumulate=True)()
    np.testing.assert_allclose(exactly(dx), before + exact_dy * exact_b, rtol=4 * ROUNDING[dtype])
