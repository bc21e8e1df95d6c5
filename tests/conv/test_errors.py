"""Wrong input: an error that names the argument, what was expected and what came, before anything is written."""

import numpy as np
import pytest

from pydtconv import config, conv
from pydtconv.conv import ConvProblem

P = ConvProblem(2, 6, 5, 4, 8, (3, 3), padding="same")
X, W, DY, B = (np.ones(shape, "float32") for shape in (P.x_shape, P.w_shape, P.y_shape, (P.co,)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 0}, "n: expected an integer of 1 or more, got 0"),
        ({"ci": 2.5}, "ci: expected an integer of 1 or more, got 2.5"),
        ({"kernel": 0}, "kernel: expected integers of 1 or more, got 0"),
        ({"kernel": (1, 2, 3)}, r"kernel: expected an integer or a pair of integers, got \(1, 2, 3\)"),
        ({"strides": "2"}, "strides: expected an integer or a pair of integers, got '2'"),
        ({"padding": "full"}, "padding: expected 'valid', 'same' or .* got 'full'"),
        ({"padding": ((0, -1), (0, 0))}, "padding: expected .* of 0 or more, got"),
        ({"groups": 3}, "groups: expected a divisor of ci=4, got 3"),
        ({"groups": 4, "co": 6}, "groups: expected a divisor of co=6, got 4"),
        ({"dtype": "float16"}, "dtype: expected one of float32, float64, bfloat16, got 'float16'"),
        (
            {"groups": 4, "dilation": (2**22, 1)},
            "dilation: expected at most 4194304 pixels of depthwise windows, got 2516",
        ),
        ({"kernel": 7, "padding": "valid"}, r"kernel: the output would be empty \(0 x -1\)"),
    ],
)
def test_problem(changes, message):
    sizes = {"n": 2, "ih": 6, "iw": 5, "ci": 4, "co": 8, "kernel": (3, 3), "padding": "same"}
    with pytest.raises(ValueError, match=message):
        ConvProblem(**(sizes | changes))


def overlapping():
    both = np.ones((2, 6, 5, 12), "float32")
    return both[..., :4], both[..., 2:10]


def unaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)
    return raw[1:].view(array.dtype).reshape(array.shape)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: conv.forward(P, X[:1], W), ValueError, r"x: expected shape \(2, 6, 5, 4\), got \(1, 6, 5, 4\)"),
        (lambda: conv.forward(P, X, W[..., :3]), ValueError, r"w: expected shape \(3, 3, 4, 8\), got \(3, 3, 4, 3\)"),
        (lambda: conv.forward(P, X, W, B[:3]), ValueError, r"bias: expected shape \(8,\), got \(3,\)"),
        (lambda: conv.forward(P, X.astype("float64"), W), ValueError, "x: expected dtype float32, got float64"),
        (lambda: conv.forward(P, X.tolist(), W), TypeError, "x: expected a numpy.ndarray, got list"),
        (lambda: conv.forward(P, np.asfortranarray(X), W), ValueError, "x: expected an NHWC array in C order"),
        (lambda: conv.forward(P, X[:, ::-1], W), ValueError, "x: expected an NHWC array in C order"),
        (lambda: conv.forward(P, X, np.asfortranarray(W)), ValueError, "w: expected an array in C order"),
        (lambda: conv.forward(P, unaligned(X), W), ValueError, "x: expected an aligned array"),
        (
            lambda: conv.forward(P, *overlapping()[:1], W, out=overlapping()[1][..., ::-1]),
            ValueError,
            "out: expected an NHWC",
        ),
        (lambda: conv.backward_data(P, DY, W, out=DY[..., :4]), ValueError, "out: .* overlaps an input"),
        (
            lambda: conv.backward_data(P, DY[:, 1:], W),
            ValueError,
            r"dy: expected shape \(2, 6, 5, 8\), got \(2, 5, 5, 8\)",
        ),
        (lambda: conv.backward_weights(P, X, DY, out=W.T), ValueError, r"out: expected shape \(3, 3, 4, 8\)"),
        (
            lambda: conv.forward(P, X, W, algorithm="fast"),
            ValueError,
            "algorithm: expected 'auto' or one of im2col.*got 'fast'",
        ),
        (
            lambda: conv.forward(P, X, W, algorithm="deconvgemm"),
            ValueError,
            "deconvgemm has no forward, only backward_data",
        ),
        (
            lambda: conv.forward(P, X, W, algorithm="depthwise"),
            ValueError,
            "depthwise needs groups == ci, got groups=1 and ci=4",
        ),
        (
            lambda: conv.workspace_bytes(P, "backwards", "im2col"),
            ValueError,
            "direction: expected one of forward.*got 'backwards'",
        ),
        (lambda: config.set_conv_variant("FAST"), ValueError, "set_conv_variant: expected one of BASE.*got 'FAST'"),
    ],
)
def test_call(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_overlapping_output():
    x, out = overlapping()
    with pytest.raises(ValueError, match="out: expected an array of its own"):
        conv.forward(P, x, W, out=out)


def test_read_only_output():
    out = np.zeros(P.y_shape, "float32")
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out: expected a writable array, got a read-only one"):
        conv.forward(P, X, W, out=out)


def test_nothing_is_written_before_an_error():
    out = np.full(P.y_shape, 3, "float32")
    with pytest.raises(ValueError, match="bias"):
        conv.forward(P, X, W, B[1:], out=out)
    assert (out == 3).all()


def test_views_are_used_without_a_copy():
    """Batch slices, slices of channels, arrays with extents of 1 and odd strides there."""
    big = np.random.default_rng(0).standard_normal((6, 6, 5, 9)).astype("float32")
    want = conv.forward(P, np.ascontiguousarray(big[2:4, ..., 3:7]), W)
    assert np.array_equal(conv.forward(P, big[2:4, ..., 3:7], W), want)
    p = ConvProblem(1, 6, 5, 4, 8, (3, 3), padding="same")
    assert np.array_equal(conv.forward(p, big[2:3, ..., 3:7], W), want[:1])
    q = ConvProblem(1, 6, 5, 1, 8, (3, 3), padding="same")
    one = conv.forward(q, big[:1, ..., 4:5], np.ascontiguousarray(W[:, :, :1]))
    assert np.array_equal(
        one, conv.forward(q, np.ascontiguousarray(big[:1, ..., 4:5]), np.ascontiguousarray(W[:, :, :1]))
    )


def test_out_is_returned():
    out = np.empty(P.y_shape, "float32")
    assert conv.forward(P, X, W, out=out) is out
