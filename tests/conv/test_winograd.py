"""Winograd: every size of tile, images smaller than a tile, many channels, precision, filters transformed ahead."""

import numpy as np
import pytest

from pydtconv import config, microkernels
from pydtconv._ext import runtime
from pydtconv._ext import winograd as ext
from pydtconv.conv import ConvProblem, algorithms, backward_data, choose, explain, forward
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.conv.selection import workspace_bytes
from pydtconv.conv.winograd import TransformedFilters
from pydtconv.dtypes import to_bits
from tests.conv.cases import case_of, channel_slice, tolerance


@pytest.fixture(autouse=True)
def settings_in_force():
    before = config.conv_precision(), config.num_threads()
    yield
    config.set_conv_precision(before[0])
    config.set_num_threads(before[1])


def check_every_pass(case):
    for direction in DIRECTIONS:
        case.check("winograd", direction, case.run("winograd", direction))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("extents", "m"),
    [((2, 2), 2), ((6, 2), 2), ((4, 4), 4), ((8, 12), 4), ((15, 10), 5), ((18, 6), 6), ((64, 64), 6), ((20, 20), 4)],
)
def test_every_tile(extents, m, dtype):
    """Images that whole tiles fill, with padding on all sides and on none."""
    assert ext.tile(*extents, "forward", "small") == (m, m)
    for padding in ("same", "valid"):
        grown = extents if padding == "same" else tuple(extent + 2 for extent in extents)
        check_every_pass(case_of(ConvProblem(2, *grown, 19, 35, 3, padding=padding, dtype=dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("channels", [(1, 1), (3, 64), (17, 33), (64, 3), (130, 31)])
def test_channels(channels, dtype):
    check_every_pass(case_of(ConvProblem(3, 13, 6, *channels, 3, padding=((0, 2), (3, 1)), dtype=dtype)))


@pytest.mark.parametrize("extents", [(1, 1), (1, 9), (3, 1), (3, 3)])
def test_images_smaller_than_a_tile(extents):
    check_every_pass(case_of(ConvProblem(2, *extents, 8, 9, 3, padding=((1, 2), (2, 3)), dtype="float64")))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("extents", "dilation", "padding"),
    [
        ((12, 12), (2, 2), "same"),
        ((17, 13), (3, 2), "same"),
        ((17, 13), (1, 5), "same"),
        ((19, 11), (4, 3), "valid"),
        ((11, 14), (2, 3), ((0, 3), (5, 1))),
        ((6, 5), (2, 2), ((4, 4), (6, 7))),  # whole taps of padding
        ((5, 7), (6, 9), "same"),  # of every tap but one nothing but padding
        ((3, 2), (50, 90), ((50, 51), (90, 90))),
    ],
)
def test_dilation(extents, dilation, padding, dtype):
    """Phases of several lengths, tiles outside of the image, results on several threads."""
    case = case_of(ConvProblem(2, *extents, 19, 35, 3, padding=padding, dilation=dilation, dtype=dtype))
    for direction in DIRECTIONS:
        results = []
        for threads in (1, 3):
            config.set_num_threads(threads)
            results.append(case.run("winograd", direction))
            case.check("winograd", direction, results[-1])
        assert np.array_equal(*results)


def test_dilation_far_beyond_the_image():
    p = ConvProblem(2, 3, 5, 6, 7, 3, padding="same", dilation=(2**20, 2**18))
    x, w = (np.random.default_rng(0).standard_normal(shape).astype("float32") for shape in (p.x_shape, p.w_shape))
    assert np.allclose(forward(p, x, w, algorithm="winograd"), x @ w[1, 1], atol=1e-5)


@pytest.mark.parametrize("dilation", [(1, 2, 3), (1, 5, 1)])
def test_dilation_of_volumes(dilation):
    p = ConvProblem.of((2, 4, 9, 7, 6), (3, 3, 3, 6, 10), padding="same", dilation=dilation)
    check_every_pass(case_of(p))
    check_every_pass(case_of(ConvProblem.of((2, 4, 9, 7, 6), (1, 3, 3, 6, 10), dilation=(2, 2, 2))))


@pytest.mark.parametrize(("n", "extent", "channels"), [(3, 4, (256, 320)), (40, 4, (256, 288)), (70, 8, (40, 24))])
def test_many_channels_and_many_tiles(n, extent, channels):
    """Transformed filters that are not kept, several blocks of tiles, on several threads."""
    case = case_of(ConvProblem(n, extent, extent, *channels, 3, padding="same"))
    results = []
    for threads in (1, 3):
        config.set_num_threads(threads)
        for direction in DIRECTIONS:
            got = case.run("winograd", direction)
            case.check("winograd", direction, got)
            results.append(got)
    for one, three in zip(results[:3], results[3:], strict=True):
        assert np.array_equal(one, three)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "extent", "channels"), [(50, 15, (20, 9)), (43, 15, (5, 33))])
def test_threads_with_blocks_of_their_own(n, extent, channels, dtype):
    """Several slices of tiles, the last block of which is not whole, in backward_weights."""
    case = case_of(ConvProblem(n, extent, extent, *channels, 3, padding="same", dtype=dtype))
    p, found = case.p, []
    before = runtime.cache_bytes(2)
    runtime.set_cache_bytes(2, 1 << 23)  # which holds all tiles
    shared = workspace_bytes(p, "backward_weights", "winograd")
    runtime.set_cache_bytes(2, 1 << 18)
    try:
        for threads in (1, 2, 3):
            config.set_num_threads(threads)
            found.append(case.run("winograd", "backward_weights"))
        config.set_num_threads(1)
        assert workspace_bytes(p, "backward_weights", "winograd") != shared
    finally:
        runtime.set_cache_bytes(2, before)
    for got in found:
        case.check("winograd", "backward_weights", got)
        assert np.array_equal(got, found[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_microkernel(dtype):
    """Panels of other widths than a vector, kernels that want packed operands."""
    case = case_of(ConvProblem(2, 9, 7, 21, 37, 3, padding="same", dtype=dtype))
    try:
        for kernel in microkernels.available(dtype):
            if kernel.usable:
                microkernels.select(kernel.name, dtype)
                check_every_pass(case)
    finally:
        microkernels.select(None, dtype)


def test_precision():
    p = ConvProblem(16, 32, 32, 64, 64, 3, padding="same")
    for direction in DIRECTIONS:
        config.set_conv_precision("fast")
        assert choose(p, direction, variant="AUTO").algorithm == "winograd"
        config.set_conv_precision("strict")
        assert "winograd" not in algorithms(p, direction)
        assert choose(p, direction, variant="AUTO").algorithm != "winograd"
        assert choose(p, direction, "winograd").algorithm == "winograd"
    with pytest.raises(ValueError, match="'fast' or 'strict', got 'exact'"):
        config.set_conv_precision("exact")
    assert config.conv_precision() == "strict"


def test_reasons():
    sizes = {"n": 1, "ih": 12, "iw": 12, "ci": 4, "co": 4}
    reasons = {
        "3x3 filters, got 5x3": {"kernel": (5, 3)},
        "strides of 1, got 2, 1": {"kernel": 3, "strides": (2, 1)},
        "groups == 1, got 2": {"kernel": 3, "groups": 2},
    }
    for reason, options in reasons.items():
        assert explain(ConvProblem(**sizes, **options), "forward")["winograd"] == f"winograd needs {reason}"
    deep = ConvProblem.of((1, 9, 9, 9, 4), (3, 3, 3, 4, 4), dilation=(2, 1, 1))
    assert explain(deep, "forward")["winograd"] == "winograd needs a dilation of 1 along the depth, got 2"


@pytest.mark.parametrize("channels", [(9, 21), (256, 320)])
def test_filters_transformed_ahead(channels):
    case = case_of(ConvProblem(2, 7, 9, *channels, 3, padding=((1, 0), (2, 1))))
    ahead = TransformedFilters(case.p, "forward", case.w)
    assert np.array_equal(ahead(case.x, case.b), forward(case.p, case.x, case.w, case.b, algorithm="winograd"))
    relu = ahead(channel_slice(case.x), activation="relu")
    want = np.maximum(case.want["forward"] - case.b, 0)
    assert np.abs(relu - want).max() <= tolerance("winograd", "float32") * want.max()
    back = TransformedFilters(case.p, "backward_data", case.w)
    assert np.array_equal(back(case.dy), backward_data(case.p, case.dy, case.w, algorithm="winograd"))
    with pytest.raises(ValueError, match="w: expected shape"):
        TransformedFilters(case.p, "forward", case.w[:2])
    with pytest.raises(ValueError, match="got 'backward_weights'"):
        TransformedFilters(case.p, "backward_weights", case.w)
    with pytest.raises(ValueError, match="bias and activation"):
        back(case.dy, activation="relu")
    with pytest.raises(ValueError, match="out: expected a writable array"):
        ahead(case.x, out=np.broadcast_to(case.x[:1, :1, :1, :1], case.p.y_shape))


SPARSE = {
    **{
        f"{h}x{w}": ((2, h, w, 19), (3, 3, 19, 35), {})
        for h, w in ((2, 2), (6, 4), (8, 12), (15, 10), (18, 12), (14, 14), (16, 16), (20, 7))
    },
    "one channel": ((3, 28, 28, 1), (3, 3, 1, 8), {}),
    "at corners": ((30, 2, 6, 19), (3, 3, 19, 35), {"padding": ((0, 1), (0, 1))}),
    "wide padding": ((2, 9, 11, 5), (3, 3, 5, 20), {"padding": ((4, 3), (5, 0))}),
    "dilated": ((2, 17, 13, 6), (3, 3, 6, 40), {"dilation": (3, 2)}),
    "of a volume": ((2, 5, 12, 9, 4), (3, 3, 3, 4, 20), {}),
    "tiles kept": ((3, 12, 12, 256), (3, 3, 256, 320), {}),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", SPARSE)
def test_windows_of_zeros_give_zeros(name, dtype):
    """As the direct method does: a constant background stays one, which a ReLU and its gradient see."""
    shape, filters, more = SPARSE[name]
    p = ConvProblem.of(shape, filters, **{"padding": "same", **more}, dtype=dtype)
    random = np.random.default_rng(3)
    real = "float64" if dtype == "float64" else "float32"
    w, bias = (random.standard_normal(each).astype(real) for each in (filters, filters[-1:]))
    for call, extents in ((forward, p.x_shape), (backward_data, p.y_shape)):
        x = random.standard_normal(extents) * (random.random((*extents[:-1], 1)) < 0.04)
        x = to_bits(x.astype("float32")) if dtype == "bfloat16" else x.astype(dtype)
        want = call(p, x, w, algorithm="direct")
        found = []
        for threads in (1, 2):
            config.set_num_threads(threads)
            found.append(call(p, x, w, algorithm="winograd"))
        np.testing.assert_array_equal(*found)
        assert (want == 0).any()
        np.testing.assert_array_equal(found[0][want == 0], 0)
        if call is forward:
            with_bias = call(p, x, w, bias, algorithm="winograd")
            np.testing.assert_array_equal(with_bias[want == 0], call(p, x, w, bias, algorithm="direct")[want == 0])
