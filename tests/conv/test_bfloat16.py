"""Convolutions of bfloat16 images: each pass with each usable micro-kernel, against float64 sums of what is rounded."""

import numpy as np
import pytest

from pydtconv import config, dtypes, microkernels
from pydtconv.conv import ConvProblem, backward_data, backward_weights, forward
from pydtconv.conv.functional import bind, run, scratch
from pydtconv.conv.selection import choose, explain, workspace_bytes
from tests.conv.cases import random_problem
from tests.reference import conv as reference

KERNELS = [kernel.name for kernel in microkernels.available("bfloat16") if kernel.usable]
#: where tiles have edges, and each way in which a piece is copied: rows, a pixel of many images, im2col, in place
CASES = {
    "rows": {"n": 3, "ih": 8, "iw": 7, "ci": 40, "co": 33, "kernel": 3, "padding": "same"},
    "pixels_of_images": {"n": 17, "ih": 3, "iw": 2, "ci": 32, "co": 31, "kernel": 3, "padding": "same"},
    "first_layer": {"n": 2, "ih": 17, "iw": 19, "ci": 3, "co": 34, "kernel": 3, "padding": "same"},
    "stride": {"n": 2, "ih": 11, "iw": 13, "ci": 34, "co": 24, "kernel": (3, 2), "strides": (2, 3)},
    "stride_past_taps": {"n": 2, "ih": 8, "iw": 9, "ci": 32, "co": 16, "kernel": 1, "strides": 2},
    "dilation_groups": {"n": 2, "ih": 9, "iw": 9, "ci": 32, "co": 64, "kernel": 3, "dilation": 2, "groups": 2},
    "pointwise": {"n": 3, "ih": 5, "iw": 7, "ci": 64, "co": 40, "kernel": 1},
    "pointwise_odd": {"n": 1, "ih": 5, "iw": 7, "ci": 37, "co": 65, "kernel": 1},
}


@pytest.fixture
def kernel():
    """A function that puts a micro-kernel in force for the test."""
    yield lambda name: microkernels.select(name, "bfloat16")
    microkernels.select(None, "bfloat16")


def rounded(values):
    return dtypes.from_bits(dtypes.to_bits(values))


def random(shape, seed):
    return np.random.default_rng([seed, *shape]).standard_normal(shape, np.float32)


def arrays_of(p):
    """x, w and dy, which bfloat16 holds as they are."""
    return rounded(random(p.x_shape, 1)), rounded(random(p.w_shape, 2)), rounded(random(p.y_shape, 3))


def assert_rounded_once(bits, exact, terms):
    """Each number is within half a unit of bfloat16 of the exact one, and a rounding error of its float32 sum."""
    got = dtypes.from_bits(bits).astype(np.float64)
    assert np.all(np.abs(got - exact) <= np.abs(exact) * 2**-8 * (1 + 1e-3) + terms * 2e-6)


def exact_passes(p, x, w, dy):
    """y, dx, dw in float64."""
    x, w, dy = (array.astype(np.float64) for array in (x, w, dy))
    options = {"strides": p.strides, "padding": p.padding, "dilation": p.dilation, "groups": p.groups}
    return (
        reference.forward(x, w, **options),
        reference.backward_data(dy, w, p.x_shape, **options),
        reference.backward_weights(x, dy, p.w_shape, **options),
    )


def check(p):
    x, w, dy = arrays_of(p)
    y, dx, dw = exact_passes(p, x, w, dy)
    sizes = exact_passes(p, np.abs(x), np.abs(w), np.abs(dy))
    assert_rounded_once(forward(p, dtypes.to_bits(x), w), y, sizes[0])
    assert_rounded_once(backward_data(p, dtypes.to_bits(dy), w), dx, sizes[1])
    got = backward_weights(p, dtypes.to_bits(x), dtypes.to_bits(dy))
    assert got.dtype == np.float32
    assert np.all(np.abs(got - dw) <= sizes[2] * 2e-6)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", KERNELS)
def test_each_kernel_gives_sums_that_are_rounded_once(name, case, kernel):
    kernel(name)
    check(ConvProblem(dtype="bfloat16", **CASES[case]))


def test_volumes():
    for strides in ((2, 1, 2), 1):
        check(ConvProblem.of((2, 4, 5, 6, 5), (3, 3, 3, 5, 18), strides, "same", dtype="bfloat16"))


def test_depthwise():
    check(ConvProblem(2, 9, 10, 19, 38, 3, 2, "same", groups=19, dtype="bfloat16"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 120, 2))
def test_random_problems(seed):
    p = random_problem(seed, depthwise=seed % 10 == 0)
    check(ConvProblem(p.n, p.ih, p.iw, p.ci, p.co, p.kernel, p.strides, p.padding, p.dilation, p.groups, "bfloat16"))


@pytest.mark.skipif("amx_bf16" not in KERNELS, reason="this CPU has no AMX")
@pytest.mark.parametrize("case", ["rows", "stride"])
def test_the_portable_kernel_gives_the_bits_of_amx(case, kernel):
    p = ConvProblem(dtype="bfloat16", **(CASES[case] | {"ci": 64, "co": 64}))
    x, w, dy = arrays_of(p)
    results = []
    for name in ("amx_bf16", "portable_4x16"):
        kernel(name)
        results.append((forward(p, dtypes.to_bits(x), w), backward_data(p, dtypes.to_bits(dy), w)))
    for amx, model in zip(*results, strict=True):
        assert np.array_equal(amx, model)


@pytest.mark.parametrize("case", ["rows", "pixels_of_images", "first_layer", "pointwise"])
def test_results_do_not_depend_on_threads(case):
    p = ConvProblem(dtype="bfloat16", **(CASES[case] | {"n": 20}))
    x, w, dy = (dtypes.to_bits(a) if i != 1 else a for i, a in enumerate(arrays_of(p)))
    before, results = config.num_threads(), []
    try:
        for threads in (1, 2, 3):
            config.set_num_threads(threads)
            results.append((forward(p, x, w), backward_data(p, dy, w), backward_weights(p, x, dy)))
    finally:
        config.set_num_threads(before)
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


def bound(p, direction, x, w, y, **more):
    run(bind(p, direction, "direct", x, w, y, **more), scratch(workspace_bytes(p, direction, "direct")))


@pytest.mark.parametrize("activation", ["linear", "relu", "sigmoid"])
@pytest.mark.parametrize("case", ["rows", "pixels_of_images", "pointwise"])
def test_epilogue_is_added_to_the_unrounded_sum(case, activation):
    p = ConvProblem(dtype="bfloat16", **CASES[case])
    x, w, dy = arrays_of(p)
    bias, added = random((p.co,), 4), rounded(random(p.y_shape, 5))
    y = np.empty(p.y_shape, np.uint16)
    mean, variance = np.empty((2, p.co), np.float32)
    bound(p, "forward", dtypes.to_bits(x), w, y, bias=bias, residual=dtypes.to_bits(added), activation=activation,
          moments=(mean, variance))  # fmt: skip
    z = exact_passes(p, x, w, dy)[0] + bias + added
    sizes = exact_passes(p, np.abs(x), np.abs(w), np.abs(dy))[0] + np.abs(bias) + np.abs(added)
    exact = {"linear": z, "relu": np.maximum(z, 0), "sigmoid": 1 / (1 + np.exp(-z))}[activation]
    assert_rounded_once(y, exact, sizes)
    stored = dtypes.from_bits(y).astype(np.float64).reshape(-1, p.co)
    np.testing.assert_allclose(mean, stored.mean(0), atol=1e-5)
    np.testing.assert_allclose(variance, stored.var(0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("case", ["rows", "stride", "pointwise"])
def test_backward_data_adds_and_gathers(case):
    p = ConvProblem(dtype="bfloat16", **CASES[case])
    x, w, dy = arrays_of(p)
    mean, scale, beta = random((3, p.ci), 6)
    before = rounded(random(p.x_shape, 7))
    dx, sums = dtypes.to_bits(before), np.empty((2, p.ci), np.float32)
    bound(p, "backward_data", dx, w, dtypes.to_bits(dy), accumulate=True,
          reductions=(dtypes.to_bits(x), (mean, scale, beta, True), *sums))  # fmt: skip
    sizes = exact_passes(p, np.abs(x), np.abs(w), np.abs(dy))[1] + np.abs(before)
    assert_rounded_once(dx, exact_passes(p, x, w, dy)[1] + before, sizes)
    centred = x.astype(np.float64) - mean
    g = dtypes.from_bits(dx) * (centred * scale + beta > 0)
    axes = tuple(range(g.ndim - 1))
    np.testing.assert_allclose(sums[0], g.sum(axes), atol=1e-3)
    np.testing.assert_allclose(sums[1], (g * centred).sum(axes), atol=2e-3)


@pytest.mark.parametrize("case", ["rows", "pixels_of_images", "first_layer", "stride", "pointwise", "pointwise_odd"])
def test_images_are_normalized_as_they_are_read(case):
    p = ConvProblem(dtype="bfloat16", **CASES[case])
    x, w, dy = arrays_of(p)
    mean, scale, beta = random((3, p.ci), 6)
    read = rounded(np.maximum((x - mean) * scale + beta, 0))
    y, dw = np.empty(p.y_shape, np.uint16), np.empty(p.w_shape, np.float32)
    normalization = (mean, scale, beta, True)
    bound(p, "forward", dtypes.to_bits(x), w, y, prologue=normalization)
    bound(p, "backward_weights", dtypes.to_bits(x), dw, dtypes.to_bits(dy), prologue=normalization)
    exact = exact_passes(p, read, w, dy)
    sizes = exact_passes(p, np.abs(read) + 0.1, np.abs(w), np.abs(dy))
    got = dtypes.from_bits(y)
    assert np.all(np.abs(got - exact[0]) <= np.abs(exact[0]) * 2**-8 + sizes[0] * 2e-3)  # read may be rounded elsewhere
    assert np.all(np.abs(dw - exact[2]) <= sizes[2] * 2e-3)


def test_slices_of_channels():
    p = ConvProblem(2, 6, 7, 24, 40, 3, padding="same", dtype="bfloat16")
    x, w, _ = arrays_of(p)
    wide_x, wide_y = np.full((*p.x_shape[:3], 50), 7, np.uint16), np.full((*p.y_shape[:3], 70), 7, np.uint16)
    wide_x[..., 3:27] = dtypes.to_bits(x)
    y = forward(p, wide_x[..., 3:27], w, out=wide_y[..., 9:49])
    assert np.array_equal(y, forward(p, dtypes.to_bits(x), w))
    assert np.all(wide_y[..., :9] == 7)
    assert np.all(wide_y[..., 49:] == 7)


def test_what_is_not_finite_stays_where_its_sums_are():
    p = ConvProblem(1, 9, 9, 33, 17, 3, padding="same", dtype="bfloat16")
    x, w, _ = arrays_of(p)
    x[0, 4, 4, 5], w[w == 0] = np.inf, 1
    y = dtypes.from_bits(forward(p, dtypes.to_bits(x), w))
    spoiled = ~np.isfinite(y).all(axis=-1)[0]
    assert spoiled[3:6, 3:6].all()
    assert spoiled.sum() == 9
    x[0, 4, 4, 5] = np.nan
    assert np.isnan(dtypes.from_bits(forward(p, dtypes.to_bits(x), w))).sum() == 9 * 17


def test_arrays_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    p = ConvProblem(1, 5, 5, 8, 8, 3, dtype="bfloat16")
    x, w, _ = arrays_of(p)
    y = forward(p, x.astype(ml_dtypes.bfloat16), w)
    assert y.dtype == ml_dtypes.bfloat16
    assert np.array_equal(y.view(np.uint16), forward(p, dtypes.to_bits(x), w))


def test_what_has_no_passes_says_so():
    p = ConvProblem(1, 5, 5, 8, 8, 3, dtype="bfloat16")
    reasons = explain(p, "forward")
    assert reasons["direct"] is None
    assert reasons["winograd"] == "winograd has passes for float32 and float64 only (direct and depthwise do bfloat16)"
    assert choose(p, "forward", variant="CGT").algorithm == "direct"
    with pytest.raises(
        ValueError, match="x: expected dtype bfloat16, of ml_dtypes or as uint16, its bits, got float32"
    ):
        forward(p, np.zeros(p.x_shape, np.float32), np.zeros(p.w_shape, np.float32))
    with pytest.raises(ValueError, match="w: expected dtype float32, got uint16"):
        forward(p, np.zeros(p.x_shape, np.uint16), np.zeros(p.w_shape, np.uint16))
