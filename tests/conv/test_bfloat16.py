"""Convolutions of bfloat16 images: each pass with each usable micro-kernel, against float64 sums of what is rounded."""

import numpy as np
import pytest

from pydtconv import config, dtypes, microkernels
from pydtconv._ext import winograd as winograd_ext
from pydtconv.conv import ConvProblem, backward_data, backward_weights, forward
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run, scratch
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.conv.selection import choose, explain, ranking, workspace_bytes
from pydtconv.conv.winograd import TransformedFilters
from tests.conv.cases import random_problem
from tests.marks import slow
from tests.reference import conv as reference

KERNELS = [kernel.name for kernel in microkernels.available("bfloat16") if kernel.usable]
#: where tiles have edges, and each way in which a piece is copied: rows, a pixel of many images, im2col, in place
CASES = {
    "rows": {"n": 3, "ih": 8, "iw": 7, "ci": 40, "co": 33, "kernel": 3, "padding": "same"},
    "pixels_of_images": {"n": 17, "ih": 3, "iw": 2, "ci": 32, "co": 31, "kernel": 3, "padding": "same"},
    "first_layer": {"n": 2, "ih": 17, "iw": 19, "ci": 3, "co": 34, "kernel": 3, "padding": "same"},
    "first_layer_stride": {"n": 3, "ih": 21, "iw": 18, "ci": 3, "co": 20, "kernel": 7, "strides": 2, "padding": "same"},
    "few_channels": {"n": 5, "ih": 9, "iw": 12, "ci": 6, "co": 7, "kernel": (2, 3), "strides": (1, 2)},
    "stride": {"n": 2, "ih": 11, "iw": 13, "ci": 34, "co": 24, "kernel": (3, 2), "strides": (2, 3)},
    "stride_past_taps": {"n": 2, "ih": 8, "iw": 9, "ci": 32, "co": 16, "kernel": 1, "strides": 2},
    "dilation_groups": {"n": 2, "ih": 9, "iw": 9, "ci": 32, "co": 64, "kernel": 3, "dilation": 2, "groups": 2},
    "pointwise": {"n": 3, "ih": 5, "iw": 7, "ci": 64, "co": 40, "kernel": 1},
    "many_filters": {"n": 3, "ih": 4, "iw": 4, "ci": 256, "co": 320, "kernel": 3, "padding": "same"},
    "many_tiles": {"n": 50, "ih": 15, "iw": 15, "ci": 20, "co": 9, "kernel": 3, "padding": "same"},
    "pointwise_odd": {"n": 1, "ih": 5, "iw": 7, "ci": 37, "co": 65, "kernel": 1},
}


@pytest.fixture
def kernel():
    """A function that makes a micro-kernel active for the test."""
    yield lambda name: microkernels.select(name, "bfloat16")
    microkernels.select(None, "bfloat16")


def rounded(values):
    return dtypes.from_bits(dtypes.to_bits(values))


def random(shape, seed):
    return np.random.default_rng([seed, *shape]).standard_normal(shape, np.float32)


def arrays_of(p):
    """x, w and dy, which bfloat16 holds as they are."""
    return rounded(random(p.x_shape, 1)), rounded(random(p.w_shape, 2)), rounded(random(p.y_shape, 3))


def error_of_sum(terms, algorithm):
    """Of a float32 sum; what shares a tile with large sums has their errors."""
    row = TABLE[algorithm]
    return (terms if row.contained else terms.max()) * 2e-6 * row.rounding_in("bfloat16")


def assert_rounded_once(bits, exact, terms, algorithm="direct"):
    """Each number is within half a unit of bfloat16 of the exact one, and a rounding error of its float32 sum."""
    got = dtypes.from_bits(bits).astype(np.float64)
    of_sum = error_of_sum(terms, algorithm)
    assert np.all(np.abs(got - exact) <= np.abs(exact) * 2**-8 * (1 + 1e-3) + of_sum)


def exact_passes(p, x, w, dy):
    """y, dx, dw in float64."""
    x, w, dy = (array.astype(np.float64) for array in (x, w, dy))
    options = {"strides": p.strides, "padding": p.padding, "dilation": p.dilation, "groups": p.groups}
    return (
        reference.forward(x, w, **options),
        reference.backward_data(dy, w, p.x_shape, **options),
        reference.backward_weights(x, dy, p.w_shape, **options),
    )


def check(p, algorithm=None):
    """algorithm: None for depthwise or direct."""
    name = algorithm or ("depthwise" if p.groups == p.ci else "direct")
    x, w, dy = arrays_of(p)
    y, dx, dw = exact_passes(p, x, w, dy)
    sizes = exact_passes(p, np.abs(x), np.abs(w), np.abs(dy))
    assert_rounded_once(forward(p, dtypes.to_bits(x), w, algorithm=name), y, sizes[0], name)
    assert_rounded_once(backward_data(p, dtypes.to_bits(dy), w, algorithm=name), dx, sizes[1], name)
    got = backward_weights(p, dtypes.to_bits(x), dtypes.to_bits(dy), algorithm=name)
    assert got.dtype == np.float32
    assert np.all(np.abs(got - dw) <= error_of_sum(sizes[2], name))


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("many")])
@pytest.mark.parametrize("name", KERNELS)
def test_each_kernel_gives_sums_that_are_rounded_once(name, case, kernel):
    kernel(name)
    check(ConvProblem(dtype="bfloat16", **CASES[case]))


@pytest.mark.parametrize("case", ["rows", "pixels_of_images", "first_layer_stride", "stride", "pointwise"])
@pytest.mark.parametrize("name", [name for name in KERNELS if name.startswith("native")])
def test_kernels_that_widen_round_neither_filters_nor_what_is_normalized(name, case, kernel):
    kernel(name)
    p = ConvProblem(dtype="bfloat16", **CASES[case])
    x, _, dy = arrays_of(p)
    w, mean, scale, beta = random(p.w_shape, 4), *random((3, p.ci), 6)
    read = np.maximum((x.astype(np.float64) - mean) * scale + beta, 0)
    y, dx = np.empty(p.y_shape, np.uint16), np.empty(p.x_shape, np.uint16)
    bound(p, "forward", dtypes.to_bits(x), w, y, prologue=(mean, scale, beta, "relu"))
    bound(p, "backward_data", dx, w, dtypes.to_bits(dy))
    dw = np.empty(p.w_shape, np.float32)
    bound(p, "backward_weights", dtypes.to_bits(x), dw, dtypes.to_bits(dy), prologue=(mean, scale, beta, "relu"))
    sizes = exact_passes(p, read + 1, np.abs(w), np.abs(dy))
    assert np.all(np.abs(dw - exact_passes(p, read, w, dy)[2]) <= error_of_sum(sizes[2], "direct"))
    assert_rounded_once(y, exact_passes(p, read, w, dy)[0], sizes[0])
    assert_rounded_once(dx, exact_passes(p, read, w, dy)[1], sizes[1])


@pytest.mark.parametrize("kernel", [each.name for each in microkernels.available("float32") if each.usable])
@pytest.mark.parametrize("case", ["rows", "pixels_of_images", "first_layer"])
def test_winograd_multiplies_by_each_kernel_of_float32(kernel, case):
    try:
        microkernels.select(kernel, "float32")
        check(ConvProblem(dtype="bfloat16", **CASES[case]), "winograd")
    finally:
        microkernels.select(None, "float32")


@pytest.mark.parametrize("extents", [(2, 2), (6, 2), (4, 4), (8, 12), (15, 10), (18, 6), (1, 9), (3, 1)])
@pytest.mark.parametrize("channels", [(19, 35), (1, 64), (130, 3)])
def test_winograd_by_every_tile(extents, channels):
    """The extents are those of tests/conv/test_winograd.py."""
    check(ConvProblem(2, *extents, *channels, 3, padding=((1, 2), (2, 3)), dtype="bfloat16"), "winograd")


@pytest.mark.parametrize(
    ("extents", "m"), [((14, 7), 7), ((28, 28), 7), ((8, 16), 8), ((32, 31), 8), ((18, 12), 6), ((12, 4), 4)]
)
def test_winograd_by_tiles_that_are_too_large_for_float32(extents, m):
    """Whole tiles and cut ones, with channels that fill no vector."""
    assert all(winograd_ext.tile(*extents, each, "large") == (m, m) for each in DIRECTIONS)
    assert all(winograd_ext.tile(*extents, each, "small")[0] < 7 for each in DIRECTIONS)
    check(ConvProblem(3, *extents, 19, 35, 3, padding="same", dtype="bfloat16"), "winograd")


@pytest.mark.parametrize(
    ("sizes", "direction"), [((8, 28, 28, 512, 512), DIRECTIONS[2]), ((16, 56, 56, 256, 256), DIRECTIONS[0])]
)
def test_large_tiles_are_not_taken_where_much_would_be_kept(sizes, direction):
    """Gradients of transformed filters, or these, which are read again and again."""
    of_reals, halves = (ConvProblem(*sizes, 3, padding="same", dtype=dtype) for dtype in ("float32", "bfloat16"))
    assert workspace_bytes(halves, direction, "winograd") <= 1.01 * workspace_bytes(of_reals, direction, "winograd")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_of_many_channels_transformed_filters_are_not_kept(dtype):
    """However many tiles: they would be read again and again, from behind the caches."""
    few, many = (ConvProblem(n, 28, 28, 512, 512, 3, padding="same", dtype=dtype) for n in (2, 64))
    assert all(workspace_bytes(p, "forward", "winograd") < 36 * 4 * 512 * 512 for p in (few, many))


@pytest.mark.parametrize("extent", [7, slow(8)])
def test_large_tiles_in_many_blocks_give_the_same_bits_on_all_threads(extent):
    p = ConvProblem(48, 2 * extent, extent, 70, 90, 3, padding="same", dtype="bfloat16")
    x, w, dy = arrays_of(p)
    found = []
    for threads in (1, 2, 3):
        config.set_num_threads(threads)
        images = [
            call(p, dtypes.to_bits(of), w, algorithm="winograd") for call, of in ((forward, x), (backward_data, dy))
        ]
        dw = backward_weights(p, dtypes.to_bits(x), dtypes.to_bits(dy), algorithm="winograd")
        found.append(b"".join(array.tobytes() for array in (*images, dw)))
    assert len(set(found)) == 1
    check(p, "winograd")


def test_winograd_of_volumes():
    for sizes in ((2, 4, 5, 6, 5), (1, 7, 4, 4, 33)):
        check(ConvProblem.of(sizes, (3, 3, 3, sizes[-1], 18), padding="same", dtype="bfloat16"), "winograd")


def test_winograd_with_filters_transformed_ahead():
    p = ConvProblem(2, 7, 9, 21, 37, 3, padding=((1, 0), (2, 1)), dtype="bfloat16")
    x, w, dy = arrays_of(p)
    bias = random((p.co,), 4)
    ahead, back = TransformedFilters(p, "forward", w), TransformedFilters(p, "backward_data", w)
    y = forward(p, dtypes.to_bits(x), w, bias, algorithm="winograd")
    assert np.array_equal(ahead(dtypes.to_bits(x), bias), y)
    dx = backward_data(p, dtypes.to_bits(dy), w, algorithm="winograd")
    assert np.array_equal(back(dtypes.to_bits(dy)), dx)
    with pytest.raises(ValueError, match="x: expected dtype bfloat16, of ml_dtypes or as uint16, its bits, got"):
        ahead(x)


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
        images = dtypes.to_bits(x), dtypes.to_bits(dy)
        results.append(
            [run(p, image, w, algorithm="direct") for run, image in zip((forward, backward_data), images, strict=True)]
        )
    for amx, model in zip(*results, strict=True):
        assert np.array_equal(amx, model)


@pytest.mark.parametrize(
    ("case", "name"),
    [
        *((case, "direct") for case in ("rows", "pixels_of_images", "first_layer", "stride", "pointwise")),
        *((case, "winograd") for case in ("rows", "many_filters", "many_tiles")),
    ],
)
def test_results_do_not_depend_on_threads(case, name):
    p = ConvProblem(dtype="bfloat16", **(CASES[case] | ({"n": 20} if name == "direct" else {})))
    x, w, dy = (dtypes.to_bits(a) if i != 1 else a for i, a in enumerate(arrays_of(p)))
    before, results = config.num_threads(), []
    try:
        for threads in (1, 2, 3):
            config.set_num_threads(threads)
            y, dx = forward(p, x, w, algorithm=name), backward_data(p, dy, w, algorithm=name)
            results.append((y, dx, backward_weights(p, x, dy, algorithm=name)))
    finally:
        config.set_num_threads(before)
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


def bound(p, direction, x, w, y, name="direct", **more):
    """In a workspace of NaN that is not longer than it has to be."""
    space = scratch(workspace_bytes(p, direction, name))
    space.view(np.uint8)[:] = 0xFF
    run(bind(p, direction, name, x, w, y, **more), space)


EPILOGUES = [
    ("rows", "winograd"),
    ("many_tiles", "winograd"),
    ("rows", "fft"),
    ("many_tiles", "fft 9x16"),
    *((case, "direct") for case in ("rows", "pixels_of_images", "few_channels", "pointwise")),
]
ACTIVATIONS = {
    "linear": lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "relu6": lambda z: np.clip(z, 0, 6),
    "leaky_relu": lambda z: np.where(z < 0, 0.25 * z, z),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("case", "name"), EPILOGUES)
def test_epilogue_is_added_to_the_unrounded_sum(case, name, activation):
    p = ConvProblem(dtype="bfloat16", **CASES[case])
    x, w, dy = arrays_of(p)
    bias, added = random((p.co,), 4), rounded(random(p.y_shape, 5))
    y = np.empty(p.y_shape, np.uint16)
    mean, variance = np.empty((2, p.co), np.float32)
    bound(p, "forward", dtypes.to_bits(x), w, y, name, bias=bias, residual=dtypes.to_bits(added), activation=activation,
          alpha=0.25, moments=(mean, variance))  # fmt: skip
    z = exact_passes(p, x, w, dy)[0] + bias + added
    sizes = exact_passes(p, np.abs(x), np.abs(w), np.abs(dy))[0] + np.abs(bias) + np.abs(added)
    assert_rounded_once(y, ACTIVATIONS[activation](z), sizes, name)
    stored = dtypes.from_bits(y).astype(np.float64).reshape(-1, p.co)
    np.testing.assert_allclose(mean, stored.mean(0), atol=4e-6 * stored.std(0).max())
    np.testing.assert_allclose(variance, stored.var(0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["direct", "winograd", "winograd_bf16", "fft", "fft_overlap_add"])
def test_denormal_results_are_not_lost(name):
    """In whole panels and in parts of one, which are rounded by other instructions."""
    p = ConvProblem(2, 5, 6, 8, 40, 3, padding="same", dtype="bfloat16")
    reason = explain(p, "forward")[name]
    if reason:
        pytest.skip(reason)  # winograd_bf16 needs a micro-kernel that some CPUs do not choose
    bias = np.float32(1e-38) * random((p.co,), 4)
    y = np.empty(p.y_shape, np.uint16)
    bound(p, "forward", np.zeros(p.x_shape, np.uint16), random(p.w_shape, 2), y, name, bias=bias)
    assert (y == dtypes.to_bits(bias)).all()
    assert (np.abs(dtypes.from_bits(y)) < np.finfo(np.float32).tiny).any()


#: float32 bits: between two numbers of bfloat16, beside that, at the ends of what there is, NaN of any payload
AWKWARD = [0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001, 0x7F7FFFFF, 0x7F7F7FFF, 0x7F800000, 0x00008000, 0x00018001]
NANS = [0x7FC00000, 0x7FFFFFFF, 0x7FC08000, 0x7FD2FFFF]


@pytest.mark.parametrize(
    ("name", "kernel_size"), [("direct", 1), ("direct", 3), ("winograd", 3), ("winograd_bf16", 3), ("fft", 3)]
)
def test_ties_go_to_even_and_nan_stays(name, kernel_size):
    """Each where two vectors are rounded together, one alone, and a part of one; and beside ordinary numbers."""
    p = ConvProblem(2, 5, 6, 8, 45, kernel_size, padding="same", dtype="bfloat16")
    reason = explain(p, "forward")[name]
    if reason:
        pytest.skip(reason)  # winograd_bf16 needs a micro-kernel that some CPUs do not choose
    values = np.array(AWKWARD + [bits | 1 << 31 for bits in AWKWARD + NANS] + NANS, np.uint32).view(np.float32)
    for first in range(len(values)):
        bias = random((p.co,), first)
        bias[::3] = np.resize(np.roll(values, first), 15)
        y = np.empty(p.y_shape, np.uint16)
        bound(p, "forward", np.zeros(p.x_shape, np.uint16), np.ones(p.w_shape, np.float32), y, name, bias=bias)
        nan = np.isnan(bias)
        assert np.isnan(dtypes.from_bits(y))[..., nan].all()
        assert (y[..., ~nan] == dtypes.to_bits(bias)[~nan]).all()


@pytest.mark.parametrize("accumulate", [True, False])
@pytest.mark.parametrize(("case", "name"), [*EPILOGUES, ("stride", "direct"), ("stride_past_taps", "direct")])
def test_backward_data_adds_and_gathers(case, name, accumulate):
    p = ConvProblem(dtype="bfloat16", **CASES[case])
    x, w, dy = arrays_of(p)
    mean, scale, beta = random((3, p.ci), 6)
    before = rounded(random(p.x_shape, 7))
    dx, sums = dtypes.to_bits(before), np.empty((2, p.ci), np.float32)
    before *= accumulate
    bound(p, "backward_data", dx, w, dtypes.to_bits(dy), name, accumulate=accumulate,
          reductions=(dtypes.to_bits(x), (mean, scale, beta, "relu"), *sums))  # fmt: skip
    sizes = exact_passes(p, np.abs(x), np.abs(w), np.abs(dy))[1] + np.abs(before)
    assert_rounded_once(dx, exact_passes(p, x, w, dy)[1] + before, sizes, name)
    centred = x.astype(np.float64) - mean
    g = dtypes.from_bits(dx) * (centred * scale + beta > 0)
    axes = tuple(range(g.ndim - 1))
    np.testing.assert_allclose(sums[0], g.sum(axes), atol=1e-3)
    np.testing.assert_allclose(sums[1], (g * centred).sum(axes), atol=2e-3)


@pytest.mark.parametrize(
    ("case", "name"),
    [
        *(
            (case, "direct")
            for case in (
                "rows",
                "pixels_of_images",
                "first_layer",
                "few_channels",
                "stride",
                "pointwise",
                "pointwise_odd",
            )
        ),
        *((case, "winograd") for case in ("rows", "pixels_of_images", "many_filters", "many_tiles")),
    ],
)
def test_images_are_normalized_as_they_are_read(case, name):
    p = ConvProblem(dtype="bfloat16", **CASES[case])
    x, w, dy = arrays_of(p)
    mean, scale, beta = random((3, p.ci), 6)
    read = np.maximum((x - mean) * scale + beta, 0)
    read = rounded(read) if name == "direct" else read
    y, dw = np.empty(p.y_shape, np.uint16), np.empty(p.w_shape, np.float32)
    normalization = (mean, scale, beta, "relu")
    bound(p, "forward", dtypes.to_bits(x), w, y, name, prologue=normalization)
    bound(p, "backward_weights", dtypes.to_bits(x), dw, dtypes.to_bits(dy), name, prologue=normalization)
    exact = exact_passes(p, read, w, dy)
    sizes = exact_passes(p, np.abs(read) + 0.1, np.abs(w), np.abs(dy))
    got = dtypes.from_bits(y)
    assert np.all(np.abs(got - exact[0]) <= np.abs(exact[0]) * 2**-8 + sizes[0] * 2e-3)  # read may be rounded elsewhere
    assert np.all(np.abs(dw - exact[2]) <= sizes[2] * 2**-8)  # or not at all


@pytest.mark.parametrize("activation", [None, "relu", "relu6", "silu", "hard_silu"])
@pytest.mark.parametrize("sizes", [(2, 9, 11, 19, 19, 3), (3, 14, 9, 48, 48, 5, 2)], ids=str)
def test_depthwise_is_that_of_float32_on_widened_images(sizes, activation):
    """Normalized as it is read, with all that it gathers: what is written is float32's result, rounded once."""
    p, q = (ConvProblem(*sizes, padding="same", groups=sizes[3], dtype=dtype) for dtype in ("bfloat16", "float32"))
    x, w, dy = (value.astype(np.float32) for value in arrays_of(p))
    mean, scale, beta, bias = random((4, p.ci), 6)
    residual, before = rounded(random(p.y_shape, 8)), rounded(random(p.x_shape, 7))
    normalization = (mean, 4 * scale, beta, activation)

    def forward(p, as_stored):
        y, moments = as_stored(residual.copy()), np.empty((2, p.co), np.float32)
        bound(p, "forward", as_stored(x), w, y, "depthwise", bias=bias, residual=y, prologue=normalization,
              moments=tuple(moments))  # fmt: skip
        dw = np.empty(p.w_shape, np.float32)
        bound(p, "backward_weights", as_stored(x), dw, as_stored(dy), "depthwise", prologue=normalization)
        dx, sums = as_stored(before.copy()), np.empty((2, p.ci), np.float32)
        bound(p, "backward_data", dx, w, as_stored(dy), "depthwise", accumulate=True,
              reductions=(as_stored(x), normalization, *sums))  # fmt: skip
        return y, dx, dw, moments, sums

    y, dx, dw, moments, sums = forward(p, dtypes.to_bits)
    want_y, want_dx, want_dw, want_moments, want_sums = forward(q, lambda value: value)
    np.testing.assert_allclose(dtypes.from_bits(y), want_y, rtol=2**-7, atol=2**-7 * np.abs(want_y).max())
    np.testing.assert_array_equal(dx, dtypes.to_bits(want_dx))
    np.testing.assert_array_equal(dw, want_dw)
    np.testing.assert_allclose(moments, want_moments, rtol=0.02, atol=0.02 * np.abs(want_moments).max())
    np.testing.assert_allclose(sums, want_sums, rtol=0.02, atol=0.02 * np.abs(want_sums).max())


@pytest.mark.parametrize("name", ["direct", "winograd", "fft", "fft_overlap_add"])
def test_slices_of_channels(name):
    p = ConvProblem(2, 6, 7, 24, 40, 3, padding="same", dtype="bfloat16")
    x, w, _ = arrays_of(p)
    wide_x, wide_y = np.full((*p.x_shape[:3], 50), 7, np.uint16), np.full((*p.y_shape[:3], 70), 7, np.uint16)
    wide_x[..., 3:27] = dtypes.to_bits(x)
    y = forward(p, wide_x[..., 3:27], w, out=wide_y[..., 9:49], algorithm=name)
    assert np.array_equal(y, forward(p, dtypes.to_bits(x), w, algorithm=name))
    assert np.all(wide_y[..., :9] == 7)
    assert np.all(wide_y[..., 49:] == 7)


def test_what_is_not_finite_stays_where_its_sums_are():
    p = ConvProblem(1, 9, 9, 33, 17, 3, padding="same", dtype="bfloat16")
    x, w, _ = arrays_of(p)
    x[0, 4, 4, 5], w[w == 0] = np.inf, 1
    y = dtypes.from_bits(forward(p, dtypes.to_bits(x), w, algorithm="direct"))
    spoiled = ~np.isfinite(y).all(axis=-1)[0]
    assert spoiled[3:6, 3:6].all()
    assert spoiled.sum() == 9
    x[0, 4, 4, 5] = np.nan
    assert np.isnan(dtypes.from_bits(forward(p, dtypes.to_bits(x), w, algorithm="direct"))).sum() == 9 * 17


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
    assert reasons["direct"] is reasons["winograd"] is None
    others = "depthwise, direct, winograd, winograd_bf16, fft, fft_overlap_add do bfloat16"
    assert reasons["im2col"] == f"im2col has passes for float32 and float64 only ({others})"
    assert choose(p, "forward", variant="CGT").algorithm == ranking(p, "forward")[0]
    with pytest.raises(
        ValueError, match="x: expected dtype bfloat16, of ml_dtypes or as uint16, its bits, got float32"
    ):
        forward(p, np.zeros(p.x_shape, np.float32), np.zeros(p.w_shape, np.float32))
    with pytest.raises(ValueError, match="w: expected dtype float32, got uint16"):
        forward(p, np.zeros(p.x_shape, np.uint16), np.zeros(p.w_shape, np.uint16))
