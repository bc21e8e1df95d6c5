"""Arrays whose memory is not what C takes it for: broadcast, sliding, misaligned, overlapping ones; missing vectors."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from pydtconv import conv, gemm
from pydtconv.conv import ConvProblem
from pydtconv.conv.arrays import pixel_stride
from pydtconv.conv.bound_passes import bind
from pydtconv.conv.winograd import TransformedFilters

P = ConvProblem(2, 6, 5, 4, 8, (3, 3), padding="same")
Q = ConvProblem(2, 6, 5, 4, 8, 1)  # what can be normalized as it is read
X, W, Y, Z = (np.ones(shape, "float32") for shape in (P.x_shape, P.w_shape, P.y_shape, Q.w_shape))
PIXEL_X, PIXEL_Y = np.arange(4, dtype="float32"), np.arange(8, dtype="float32")
CI = [np.zeros(4, "float32") for _ in range(6)]
CO = [np.zeros(8, "float32") for _ in range(3)]


def sliding(shape):
    """An image whose pixels overlap their neighbours."""
    n, h, w, c = shape
    memory = np.ones(n * h * w + c, "float32")
    return as_strided(memory, shape, (4 * h * w, 4 * w, 4, 4))


def broadcast(axes):
    """An image with the memory of its last axes only."""

    def view(shape):
        memory = np.ones(shape[4 - axes :], "float32")
        return as_strided(memory, shape, (0,) * (4 - axes) + memory.strides)

    return view


VIEWS = {
    "one value": broadcast(0),
    "one pixel": broadcast(1),
    "one row": broadcast(2),
    "one image": broadcast(3),
    "sliding": sliding,
}


@pytest.mark.parametrize("view", VIEWS)
def test_images_whose_pixels_are_not_apart(view):
    x, y = VIEWS[view](P.x_shape), VIEWS[view](P.y_shape)
    for call in (
        lambda: conv.forward(P, x, W),
        lambda: conv.forward(P, X, W, out=y),
        lambda: conv.backward_data(P, y, W),
        lambda: conv.backward_data(P, Y, W, out=x),
        lambda: conv.backward_weights(P, x, Y),
        lambda: conv.backward_weights(P, X, y),
        lambda: bind(P, "forward", "direct", X, W, Y.copy(), residual=y),
        lambda: TransformedFilters(P, "forward", W)(x),
        lambda: TransformedFilters(P, "forward", W)(X, out=y),
    ):
        with pytest.raises(
            ValueError, match="expected an NHWC array in C order or a slice of its channels, got strides"
        ):
            call()


def test_filters_and_vectors_that_are_broadcast():
    with pytest.raises(ValueError, match="w: expected an array in C order, got strides"):
        conv.forward(P, X, np.broadcast_to(PIXEL_Y, P.w_shape))
    with pytest.raises(ValueError, match="bias: expected an array in C order, got strides"):
        conv.forward(P, X, W, np.broadcast_to(np.float32(1), (8,)))


def test_pixels_of_one_channel_may_have_any_distance():
    assert pixel_stride(np.ones((2, 6, 5, 4), "float32")[..., 1:2], "x") == 4
    assert pixel_stride(np.ones((2, 1, 1, 4), "float32")[..., 1:3], "x") == 4
    assert pixel_stride(np.ones((1, 1, 1, 4), "float32"), "x") == 4


NORMALIZATION = (CI[0], CI[1], CI[2], "relu")


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"moments": (CO[0], None)}, TypeError, "variance: expected a numpy.ndarray, got NoneType"),
        ({"moments": (None, CO[0])}, TypeError, "mean: expected a numpy.ndarray, got NoneType"),
        ({"moments": (CO[0], CO[0])}, ValueError, "variance: expected an array of its own, got one that overlaps mean"),
        ({"prologue": (None, *NORMALIZATION[1:])}, TypeError, "prologue: mean: expected a numpy.ndarray, got NoneType"),
        (
            {"prologue": (CI[0], None, None, None)},
            TypeError,
            "prologue: scale: expected a numpy.ndarray",
        ),
        ({"bias": CO[0], "moments": (CO[0], CO[1])}, ValueError, "mean: .* overlaps an input"),
    ],
)
def test_vectors_of_forward(changes, kind, message):
    with pytest.raises(kind, match=message):
        bind(Q, "forward", "direct", X, Z, Y.copy(), **changes)


@pytest.mark.parametrize(
    ("reductions", "kind", "message"),
    [
        (
            (X, (None, *NORMALIZATION[1:]), *CI[3:5]),
            TypeError,
            "reductions: mean: expected a numpy.ndarray",
        ),
        (
            (X, (CI[0], None, None, "relu"), *CI[3:5]),
            TypeError,
            "reductions: scale: expected a numpy.ndarray",
        ),
        ((X, NORMALIZATION, CI[3], None), TypeError, "sum_x: expected a numpy.ndarray, got NoneType"),
        (
            (X, NORMALIZATION, CI[3], CI[3]),
            ValueError,
            "sum_x: expected an array of its own, got one that overlaps",
        ),
        ((X, NORMALIZATION, CI[0], CI[3]), ValueError, "sum: .* overlaps an input"),
        ((VIEWS["one pixel"](P.x_shape), NORMALIZATION, *CI[3:5]), ValueError, "reductions: expected an NHWC array"),
    ],
)
def test_vectors_of_backward_data(reductions, kind, message):
    with pytest.raises(kind, match=message):
        bind(P, "backward_data", "direct", np.empty_like(X), W, Y, reductions=reductions)


def misaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)
    view = raw[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def test_gemm_copies_misaligned_operands_and_refuses_such_results():
    a, b = (np.random.default_rng(i).standard_normal((20, 20)).astype("float32") for i in (0, 1))
    assert np.array_equal(gemm.gemm(misaligned(a), misaligned(b)), gemm.gemm(a, b))
    out = misaligned(a)
    with pytest.raises(ValueError, match="gemm: out must be aligned, got an array at address"):
        gemm.gemm(a, b, out=out)
    assert np.array_equal(out, a)


def test_gemm_takes_broadcast_operands_and_refuses_such_results():
    row, b = np.arange(20, dtype="float32"), np.random.default_rng(1).standard_normal((20, 20)).astype("float32")
    a = np.broadcast_to(row, (20, 20))
    np.testing.assert_allclose(gemm.gemm(a, b), a @ b, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(gemm.gemm(b, a.T), b @ a.T, rtol=1e-4, atol=1e-4)
    for out in (as_strided(row.copy(), (20, 20), (0, 4)), as_strided(np.ones(1, "float32"), (20, 20), (0, 0))):
        with pytest.raises(ValueError, match="gemm: rows or columns of out must be contiguous and apart, got strides"):
            gemm.gemm(b, b, out=out)
    with pytest.raises(ValueError, match="contiguous and apart"):
        gemm.gemm(b, b, out=as_strided(np.ones(60, "float32"), (20, 20), (8, 4)))
