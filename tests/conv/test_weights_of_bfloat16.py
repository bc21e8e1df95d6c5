"""backward_weights by products of bfloat16 on many images: rows in spans, whichever of x and dy is transposed."""

import numpy as np
import pytest

from pydtconv import config, dtypes, microkernels
from pydtconv.conv import ConvProblem
from pydtconv.conv.bound_passes import bind, run, scratch
from pydtconv.conv.selection import workspace_bytes
from tests.conv.test_bfloat16 import KERNELS, arrays_of, random, rounded
from tests.reference import conv as reference

#: dy is transposed where it has fewer channels and strides are one; rows of 32 images are cut into spans
CASES = {
    "slopes_transposed": {"n": 32, "ih": 5, "iw": 18, "ci": 70, "co": 40, "kernel": 3, "padding": "same"},
    "slopes_of_an_odd_tap": {"n": 34, "ih": 6, "iw": 9, "ci": 66, "co": 33, "kernel": (2, 3), "dilation": (2, 1)},
    "image_transposed": {"n": 32, "ih": 4, "iw": 20, "ci": 40, "co": 70, "kernel": 3, "padding": "same"},
    "strides": {"n": 33, "ih": 7, "iw": 9, "ci": 70, "co": 34, "kernel": 3, "strides": (1, 2), "padding": "same"},
    "groups": {"n": 8, "ih": 6, "iw": 9, "ci": 128, "co": 66, "kernel": 3, "groups": 2, "padding": "same"},
    "pointwise_in_rows": {"n": 4, "ih": 8, "iw": 36, "ci": 160, "co": 96, "kernel": 1},
    "pointwise_of_odd_rows": {"n": 3, "ih": 7, "iw": 11, "ci": 96, "co": 24, "kernel": 1},
    "few_slopes_joined": {"n": 4, "ih": 9, "iw": 8, "ci": 40, "co": 3, "kernel": 3, "padding": "same"},
}  # fmt: skip


def normalization_of(p, seed):
    mean, scale, beta = random((3, p.ci), seed)
    return mean, scale, beta, "relu"


def gradient(p, x, dy, normalization=None):
    dw = np.full(p.w_shape, np.nan, np.float32)
    bound = bind(p, "backward_weights", "direct", dtypes.to_bits(x), dw, dtypes.to_bits(dy), prologue=normalization)
    run(bound, scratch(workspace_bytes(p, "backward_weights", "direct")))
    return dw


def check(p, normalized):
    x, _, dy = arrays_of(p)
    read, normalization, tolerance = x, None, 2e-6
    if normalized:
        normalization = mean, scale, beta, _ = normalization_of(p, 6)
        read, tolerance = rounded(np.maximum((x - mean) * scale + beta, 0)), 2e-3  # it may be rounded to the other side
    options = {"strides": p.strides, "padding": p.padding, "dilation": p.dilation, "groups": p.groups}
    exact = reference.backward_weights(read, dy, p.w_shape, **options)
    sizes = reference.backward_weights(np.abs(read) + 0.1 * normalized, np.abs(dy), p.w_shape, **options)
    assert np.all(np.abs(gradient(p, x, dy, normalization) - exact) <= sizes * tolerance)


@pytest.mark.parametrize("case", CASES)
def test_sums_over_many_pixels(case):
    p = ConvProblem(dtype="bfloat16", **CASES[case])
    check(p, normalized=False)
    if p.groups == 1:
        check(p, normalized=True)


@pytest.mark.parametrize("case", ["slopes_transposed", "image_transposed", "pointwise_in_rows"])
def test_bits_do_not_depend_on_threads(case):
    p = ConvProblem(dtype="bfloat16", **CASES[case])
    x, _, dy = arrays_of(p)
    before, results = config.num_threads(), []
    try:
        for threads in (1, 2, 5):
            config.set_num_threads(threads)
            results.append(gradient(p, x, dy, normalization_of(p, 6)))
    finally:
        config.set_num_threads(before)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_random_problems_of_many_images(name):
    microkernels.select(name, "bfloat16")
    try:
        for seed in range(2 if name.startswith("portable") else 6):
            r = np.random.default_rng(seed)
            k = int(r.choice([1, 1, 2, 3, 3, 5]))
            ih, iw = (int(v) for v in r.integers(k, 14, 2))
            strides = int(r.choice([1, 1, 1, 2]))
            n, ci, co = int(r.choice([1, 7, 16, 32, 40])), int(r.integers(1, 130)), int(r.integers(1, 130))
            padding = "same" if r.random() < 0.5 else ((int(r.integers(0, k)), 0), (0, int(r.integers(0, k))))
            check(ConvProblem(n, ih, iw, ci, co, k, strides, padding, dtype="bfloat16"), bool(r.random() < 0.3))
    finally:
        microkernels.select(None, "bfloat16")
