"""What is particular to the direct convolution: classes of pixels, rows that are copied, workspace."""

import numpy as np
import pytest

from pydtconv import config, conv, microkernels
from pydtconv._ext import conv as ext
from pydtconv.conv import ConvProblem, workspace_bytes
from pydtconv.conv.bound_passes import bind, run
from pydtconv.conv.problem import DIRECTIONS
from tests.conv.cases import case_of, channel_slice


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("strides", [1, 2])
def test_pixels_that_are_pages_apart(direction, dtype, strides):
    """Pointwise, with pixels at multiples of 4 KiB: the rows of a tile are copied."""
    channels = 1024 if dtype == "float32" else 512
    for ci, co in ((channels, 40), (40, channels)):
        case = case_of(ConvProblem(2, 5, 7, ci, co, 1, strides, dtype=dtype))
        case.check("direct", direction, case.run("direct", direction))


@pytest.mark.parametrize("direction", ["forward", pytest.param("backward_data", marks=pytest.mark.slow)])
def test_one_tap_of_many_copies_rows_into_the_workspace(direction):
    """3x3 filters on images of one pixel meet it with one tap: the same copies, and nothing beyond the workspace."""
    case = case_of(ConvProblem(20, 1, 1, 1024, 1024, 3, padding="same"))
    nbytes = workspace_bytes(case.p, direction, "direct")
    memory = np.full(nbytes + (1 << 17), 0xA5, np.uint8)
    x, y = (np.zeros_like(a) if d == direction else a for d, a in (("backward_data", case.x), ("forward", case.dy)))
    run(bind(case.p, direction, "direct", x, case.w, y, workspace=memory[:nbytes]))
    case.check("direct", direction, y + case.b if direction == "forward" else x)
    assert (memory[nbytes:] == 0xA5).all()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    "sizes",
    [
        {"n": 33, "ih": 2, "iw": 2, "kernel": 3, "padding": "same"},
        {"n": 3, "ih": 3, "iw": 17, "kernel": 7, "padding": ((6, 5), (9, 2))},
        {
            "n": 2,
            "ih": 9,
            "iw": 4,
            "kernel": (1, 4),
            "strides": (3, 2),
            "dilation": (1, 3),
            "padding": ((0, 2), (8, 7)),
        },
        {"n": 1, "ih": 13, "iw": 13, "kernel": (2, 3), "strides": (4, 4), "dilation": (2, 6), "padding": "same"},
        {"n": 2, "ih": 7, "iw": 40, "kernel": 5, "strides": (6, 1)},
    ],
    ids=["tiny", "mostly_padding", "all_taps_outside", "stride_and_dilation_share_2", "pixels_never_read"],
)
def test_classes_of_pixels(direction, sizes):
    """Pixels with few taps, or none, and phases of strides that no tap meets."""
    for ci, co in ((5, 19), (18, 33)):
        case = case_of(ConvProblem(ci=ci, co=co, **sizes))
        for threads in (1, 3):
            config.set_num_threads(threads)
            case.check("direct", direction, case.run("direct", direction))


def test_filter_gradients_of_many_chunks_do_not_depend_on_threads():
    """Slices with sums of their own, x in place and copied."""
    for ci, co in ((3, 20), (17, 70)):
        case = case_of(ConvProblem(6, 34, 33, ci, co, 3, padding="same"))
        results = []
        for threads in (1, 2, 3, 8):
            config.set_num_threads(threads)
            dw = case.run("direct", "backward_weights")
            case.check("direct", "backward_weights", dw)
            results.append(dw.tobytes())
        assert len(set(results)) == 1


def check_gradients(case):
    """Filters' gradients of dense images and of slices of channels: the same bits on any number of threads; nothing
    beyond the workspace."""
    p, results = case.p, []
    for threads in (1, 2, 5):
        config.set_num_threads(threads)
        nbytes = workspace_bytes(p, "backward_weights", "direct")
        for images in (lambda array: array, channel_slice):
            memory, dw = np.full(nbytes + 4096, 0xA5, np.uint8), np.full_like(case.w, np.nan)
            run(bind(p, "backward_weights", "direct", images(case.x), dw, images(case.dy), workspace=memory[:nbytes]))
            assert (memory[nbytes:] == 0xA5).all()
            results.append(dw)
    case.check("direct", "backward_weights", results[0])
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("n", "side", "ci", "co"),
    [(3, 20, 300, 40), (1, 9, 1100, 1300), (5, 30, 3, 2), (1, 1, 131, 4100), (2, 23, 129, 33)],
    ids=["groups_of_panels", "one_slice", "few_channels", "blocks_of_columns", "edges"],
)
def test_pointwise_filter_gradients_in_blocks(n, side, ci, co, dtype):
    """Blocks of pixels, channels and columns; the same bits on any number of threads; nothing beyond the workspace."""
    check_gradients(case_of(ConvProblem(n, side, side, ci, co, 1, dtype=dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes",
    [
        {"n": 3, "ih": 11, "iw": 9, "ci": 1, "co": 1, "kernel": 7},
        {"n": 5, "ih": 4, "iw": 6, "ci": 3, "co": 2, "kernel": (4, 5), "padding": "same"},
        {"n": 2, "ih": 70, "iw": 200, "ci": 4, "co": 2, "kernel": 3, "strides": (1, 2), "padding": ((2, 0), (0, 3))},
        {"n": 9, "ih": 5, "iw": 5, "ci": 32, "co": 9, "kernel": (5, 3)},
        {"n": 1, "ih": 40, "iw": 61, "ci": 48, "co": 5, "kernel": (1, 3), "dilation": (4, 1)},
    ],
    ids=["one_filter", "copied", "rows_in_chunks", "in_place", "one_row_of_taps"],
)
def test_gradients_of_few_filters_lie_along_taps(sizes, dtype):
    """Tiles of several rows of taps, which are smaller at the ends of an image; the same bits on any number of threads;
    nothing beyond the workspace, and nothing of x where no tap meets it."""
    p = ConvProblem(dtype=dtype, **sizes)
    assert ext.direct_is_along_taps(p.sizes, "backward_weights", dtype)
    check_gradients(case_of(p))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes",
    [
        {"n": 3, "ih": 11, "iw": 9, "ci": 7, "co": 1, "kernel": 5},
        {"n": 5, "ih": 4, "iw": 6, "ci": 33, "co": 2, "kernel": (3, 6), "padding": "same"},
        {"n": 2, "ih": 14, "iw": 13, "ci": 40, "co": 3, "kernel": 3, "strides": (1, 2), "padding": ((2, 0), (0, 3))},
        {"n": 1, "ih": 15, "iw": 9, "ci": 64, "co": 2, "kernel": 3, "dilation": (1, 2)},
        {"n": 29, "ih": 3, "iw": 3, "ci": 50, "co": 2, "kernel": 1},
    ],
    ids=["one_filter", "borders", "strides", "dilation", "pointwise"],
)
def test_few_channels_are_sums_of_vectors(sizes, dtype):
    """Tiles of 1, 2, 4 and 8 rows; the same bits on any number of threads; what is written as part of a tile's end."""
    p = ConvProblem(dtype=dtype, **sizes)
    turned = ConvProblem(dtype=dtype, **(sizes | {"ci": p.co, "co": p.ci}))
    for each, direction in ((p, "forward"), (turned, "backward_data")):
        assert ext.direct_is_along_taps(each.sizes, direction, dtype) or each.sw > 1
        case, results = case_of(each), []
        for threads in (1, 3):
            config.set_num_threads(threads)
            results.append(case.run("direct", direction))
        case.check("direct", direction, results[0])
        np.testing.assert_array_equal(results[1], results[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(1, 5, 4, 3, 16, 3), (3, 4, 4, 7, 48, 4), (1, 3, 3, 37, 64, 1)], ids=str)
def test_filters_of_few_pixels_are_not_packed(sizes, dtype):
    """The bits are those of the same pixels among many, whose filters are packed."""
    p = ConvProblem(*sizes, dtype=dtype)
    assert ext.direct_reads_in_place(p.sizes, dtype)
    case = case_of(p)
    y = case.run("direct", "forward")
    case.check("direct", "forward", y)
    many = ConvProblem(60, *sizes[1:], dtype=dtype)
    assert not ext.direct_reads_in_place(many.sizes, dtype)
    x = np.concatenate([case.x, np.ones((60 - p.n, *p.x_shape[1:]), dtype)])
    got = conv.forward(many, x, case.w, bias=case.b, algorithm="direct")
    np.testing.assert_array_equal(got[: p.n], y)


@pytest.mark.parametrize("groups", [1, 2])
def test_large_filters_of_few_pixels_are_packed_when_they_are_used(groups):
    """Each thread packs blocks of its own; workspaces have no room for all panels."""
    p = ConvProblem(1, 4, 4, 192 * groups, 192 * groups, 3, padding="same", groups=groups)
    case = case_of(p)
    for direction in ("forward", "backward_data"):
        results = []
        for threads in (1, 3):
            config.set_num_threads(threads)
            results.append(case.run("direct", direction))
        case.check("direct", direction, results[0])
        np.testing.assert_array_equal(results[1], results[0])
    config.set_num_threads(1)
    assert workspace_bytes(p, "backward_data", "direct") < case.w.nbytes


def test_sums_of_few_channels_do_not_depend_on_the_image():
    """A row of taps is one run, also where the image is one row, or as wide as the filter."""
    for ci, kernel in ((5, (1, 9)), (5, (9, 1)), (3, (3, 3))):
        high, wide = (12 + k - 1 for k in kernel)
        p = ConvProblem(1, high, wide, ci, 1, kernel)
        case = case_of(p)
        y = conv.forward(p, case.x, case.w, algorithm="direct")
        for row, column, rows, columns in ((3, 0, 1, 12), (0, 4, 12, 1), (2, 5, 1, 1)):
            x = np.ascontiguousarray(
                case.x[:, row : row + rows + kernel[0] - 1, column : column + columns + kernel[1] - 1]
            )
            part = conv.forward(ConvProblem(*x.shape[:3], ci, 1, kernel), x, case.w, algorithm="direct")
            np.testing.assert_array_equal(part, y[:, row : row + rows, column : column + columns])


def test_few_channels_end_as_others_do():
    """Scale, residual and activations of forward; dx that is added to."""
    p, random = ConvProblem(2, 6, 7, 24, 3, 3, padding="same"), np.random.default_rng(1)
    case = case_of(p)
    scale, beta = (random.standard_normal(p.co).astype("float32") for _ in range(2))
    residual = random.standard_normal(p.y_shape).astype("float32")
    want = conv.forward(p, case.x, case.w, algorithm="im2col")
    for activation, of in (("linear", lambda y: y), ("relu", lambda y: np.maximum(y, 0)), ("tanh", np.tanh)):
        y = np.empty_like(want)
        options = {"bias": case.b, "scale": (scale, beta), "residual": residual, "activation": activation}
        workspace = np.empty(workspace_bytes(p, "forward", "direct"), np.uint8)
        run(bind(p, "forward", "direct", case.x, case.w, y, workspace=workspace, **options))
        np.testing.assert_allclose(y, of((want + case.b) * scale + beta + residual), rtol=1e-4, atol=1e-4)
    turned = case_of(ConvProblem(2, 6, 7, 3, 24, 3, padding="same"))
    dx = np.ones(turned.x.shape, "float32")
    workspace = np.empty(workspace_bytes(turned.p, "backward_data", "direct"), np.uint8)
    run(bind(turned.p, "backward_data", "direct", dx, turned.w, turned.dy, accumulate=True, workspace=workspace))
    turned.check("direct", "backward_data", dx - 1)


def test_few_channels_do_not_reach_for_what_lies_behind_a_window():
    """An infinity in the next pixel is not multiplied by a zero that fills up a vector."""
    x = np.ones((1, 3, 8, 5), "float32")
    x[0, :, 7] = np.inf
    y = conv.forward(ConvProblem(1, 3, 8, 5, 1, 3), x, np.ones((3, 3, 5, 1), "float32"), algorithm="direct")
    assert (y[0, 0, :5, 0] == 45).all()
    assert y[0, 0, 5, 0] == np.inf


def test_rows_that_a_tap_does_not_meet_are_not_multiplied_by_zeros():
    """An infinity in the first row of x reaches the first row of taps alone."""
    x, dy = np.ones((2, 9, 9, 2), "float32"), np.ones((2, 5, 5, 1), "float32")
    x[0, 0] = np.inf
    dw = conv.backward_weights(ConvProblem(2, 9, 9, 2, 1, 5), x, dy, algorithm="direct")
    assert (dw[0] == np.inf).all()
    assert (dw[1:] == 50).all()


@pytest.mark.parametrize("channels", [(1, 16), (4, 32), (3, 48), (5, 20)], ids=str)
def test_filter_gradients_of_large_filters_copy_their_chunks(channels):
    """Images hardly larger than their filters, of few channels; dy is a panel where it is whole vectors."""
    case = case_of(ConvProblem(5, 13, 12, *channels, 9))
    case.check("direct", "backward_weights", case.run("direct", "backward_weights"))


@pytest.mark.parametrize("filters", [1, 3])
def test_gradients_of_few_filters_as_large_as_the_image(filters):
    """One product that reads x as it lies; the same bits on any number of threads; nothing beyond the workspace."""
    case, results = case_of(ConvProblem(19, 13, 9, 131, filters, (13, 9))), []
    for threads in (1, 3):
        config.set_num_threads(threads)
        nbytes = workspace_bytes(case.p, "backward_weights", "direct")
        memory, dw = np.full(nbytes + 4096, 0xA5, np.uint8), np.full_like(case.w, np.nan)
        run(bind(case.p, "backward_weights", "direct", case.x, dw, case.dy, workspace=memory[:nbytes]))
        assert (memory[nbytes:] == 0xA5).all()
        results.append(dw)
    case.check("direct", "backward_weights", results[0])
    np.testing.assert_array_equal(results[1], results[0])


@pytest.mark.parametrize("kernel", [each.name for each in microkernels.available("float32") if each.usable])
def test_pointwise_filter_gradients_with_each_micro_kernel(kernel):
    """Panels narrower than half a vector, too: what is stored past a row is stored again, or not stored at all."""
    try:
        microkernels.select(kernel, "float32")
        case = case_of(ConvProblem(2, 5, 5, 70, 50, 1))
        case.check("direct", "backward_weights", case.run("direct", "backward_weights"))
    finally:
        microkernels.select(None, "float32")


def test_padding_costs_nothing():
    """An infinite filter element that falls on padding everywhere is not multiplied: 0 * inf would be NaN."""
    p = ConvProblem(2, 1, 6, 3, 4, (3, 1), padding="same")
    x, w = np.ones(p.x_shape, "float32"), np.ones(p.w_shape, "float32")
    w[0], w[2] = np.inf, np.inf
    assert (conv.forward(p, x, w, algorithm="direct") == 3).all()
    assert (conv.backward_data(p, np.ones(p.y_shape, "float32"), w, algorithm="direct") == 4).all()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_workspace_is_filters_and_little_else(direction):
    for n, extent in ((4, 32), (64, 32), (4, 128)):
        p = ConvProblem(n, extent, extent, 64, 96, 3, padding="same")
        filters = 9 * 64 * 96 * 4
        assert workspace_bytes(p, direction, "direct") <= 16 * filters + (1 << 20)
