"""Sizes at and beyond what C can hold: refused by name, never wrapped around; and extreme ones that are fine."""

import contextlib
import itertools
import sys

import numpy as np
import pytest

from pydtconv import conv
from pydtconv._ext import conv as ext
from pydtconv.conv import ConvProblem
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.conv.tap_counts import taps_met
from tests.conv.cases import ROWS

SIZES = {"n": 2, "ih": 6, "iw": 5, "ci": 4, "co": 8, "kernel": 3, "padding": "same"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ci": 2**62, "kernel": 1, "strides": 2}, f"ci: expected integers of at most 2147483647, got {2**62}"),
        ({"n": 2**31}, "n: expected integers of at most 2147483647, got 2147483648"),
        ({"n": 2**64}, f"n: expected integers of at most 2147483647, got {2**64}"),
        ({"kernel": (3, 2**40)}, "kernel: expected integers of at most 2147483647"),
        ({"kernel": float("inf")}, "kernel: expected an integer or a pair of integers, got inf"),
        ({"strides": 2**33}, "strides: expected integers of at most 2147483647"),
        ({"dilation": 2**33, "kernel": 1}, "dilation: expected integers of at most 2147483647"),
        ({"padding": ((2**63, 0), (0, 0))}, "padding: expected .* integers"),
        ({"padding": ((2**31 - 1, 2**31 - 1), (0, 0))}, "padding: expected at most 2147483647 pixels vertically"),
        (
            {"n": 2**20, "ih": 2**20, "iw": 2**20},
            f"sizes: expected at most {2**50} elements of x with its padding, got",
        ),
        ({"ci": 2**30, "co": 2**30, "ih": 1, "iw": 1}, f"sizes: expected at most {2**50} elements of the kernel, got"),
        ({"n": 2**25, "co": 2**30, "kernel": 1, "ci": 1}, f"sizes: expected at most {2**50} elements of the output"),
        (
            {"n": 1, "ci": 1, "co": 1, "ih": 2**14, "iw": 2**14, "kernel": 2**12},
            f"sizes: expected at most {2**50} elements of the matrix of im2col",
        ),
        # products that wrapped around to less than nothing ended the process: for winograd they made zero threads
        (
            {"n": 1, "ih": 300, "iw": 300, "ci": 2**22, "co": 2**23},
            f"sizes: expected at most {2**62} products of a pass, got",
        ),
    ],
)
def test_sizes_that_c_cannot_hold_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        ConvProblem(**(SIZES | changes))


@pytest.mark.parametrize(("algorithm", "direction"), ROWS)
def test_the_c_function_refuses_sizes_below_one(algorithm, direction):
    """ConvProblem does not let them through; C says so instead of dividing by them."""
    p = ConvProblem(2, 6, 5, 4, 4, 3, padding="same", groups=4 if algorithm == "depthwise" else 1)
    arrays = [np.ones(shape, p.dtype) for shape in (p.x_shape, p.w_shape, p.y_shape)]
    for place in (0, 1, 3, 4, 6, 7, 9, 15):  # n ih ci oh co kh sh groups
        sizes = (*p.sizes[:place], 0, *p.sizes[place + 1 :])
        assert ext.workspace_bytes(sizes, algorithm, direction, p.dtype) == 0
        assert ext.bind(sizes, algorithm, direction, *arrays, p.ci, p.co)(np.empty(1 << 20, np.uint8)) == 3


@contextlib.contextmanager
def lines_limit(most):
    """Fails where more lines of Python than `most` run within it."""
    left, before = itertools.repeat(None, most), sys.gettrace()

    def count(frame, event, argument):
        assert next(left, "none") is None, f"expected at most {most} lines"
        return count

    sys.settrace(count)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_choosing_does_not_walk_through_taps(direction):
    p = ConvProblem(1, 10**7, 1, 1, 1, (10**7, 1), padding="same")
    with lines_limit(100_000):
        assert "direct" in conv.algorithms(p, direction)


def test_taps_met_are_those_of_a_walk():
    random = np.random.default_rng(0)
    for _ in range(300):
        written, taps, stride, dilation, read = (int(n) for n in random.integers(1, 12, 5))
        before = int(random.integers(-3, 12))
        walked = sum(0 <= o * stride - before + t * dilation < read for o in range(written) for t in range(taps))
        assert taps_met(written, taps, stride, dilation, before, read) == walked


@pytest.mark.parametrize(("algorithm", "direction"), [row for row in ROWS if TABLE[row[0]].contained])
def test_far_more_padding_than_image(algorithm, direction):
    """The distance to the image times its channels goes beyond 32 bits; of all taps, one meets the only pixel."""
    depthwise = algorithm == "depthwise"
    co, groups = (4096, 4096) if depthwise else (1, 1)
    p = ConvProblem(1, 1, 1, 4096, co, (1, 2), (1, 2**19), ((0, 0), (2**20, 1)), groups=groups)
    random = np.random.default_rng(0)
    x, w, dy = (random.standard_normal(shape).astype(p.dtype) for shape in (p.x_shape, p.w_shape, p.y_shape))
    pixel, tap, gradient = x[0, 0, 0], w[0, 0], dy[0, 0, 2]
    if direction == "forward":
        got, want = conv.forward(p, x, w, algorithm=algorithm), np.zeros(p.y_shape)
        want[0, 0, 2] = pixel * tap[0] if depthwise else pixel.astype("float64") @ tap
    elif direction == "backward_data":
        got, want = conv.backward_data(p, dy, w, algorithm=algorithm), np.zeros(p.x_shape)
        want[0, 0, 0] = gradient * tap[0] if depthwise else tap.astype("float64") @ gradient
    else:
        got, want = conv.backward_weights(p, x, dy, algorithm=algorithm), np.zeros(p.w_shape)
        want[0, 0] = pixel * gradient if depthwise else np.outer(pixel, gradient)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
