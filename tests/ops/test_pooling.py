"""Pooling: values, gradients, ties, NaN, large windows, and which of equal maxima the kernel takes."""

import numpy as np
import pytest

from pydtconv._ext import pooling, runtime
from pydtconv.kernels import compute
from pydtconv.ops import (
    AdaptiveAveragePool,
    AdaptiveMaxPool,
    AveragePool,
    GlobalAveragePool,
    GlobalMaxPool,
    MaxPool,
    Spec,
)
from tests.ops.harness import check_op
from tests.reference import pooling as reference

#: shape, pool_size, strides, padding
CASES = [
    ((2, 6, 6, 3), (2, 2), None, "valid"),
    ((2, 7, 5, 17), (2, 3), (2, 1), "valid"),
    ((1, 7, 7, 64), (3, 3), (2, 2), "same"),
    ((2, 8, 8, 5), (3, 3), (2, 2), "same"),
    ((1, 5, 6, 70), (3, 3), (1, 1), ((1, 1), (1, 1))),
    ((2, 6, 5, 1), (3, 2), (2, 2), ((2, 0), (0, 1))),
    ((1, 9, 9, 4), (2, 2), (3, 3), "valid"),
    ((1, 4, 4, 3), (4, 4), None, "valid"),
    ((2, 11, 5), (3,), (2,), "same"),
    ((2, 4, 5, 3, 3), (2, 3, 2), (1, 2, 1), ((1, 0), (1, 2), (0, 1))),
    ((1, 9, 6, 7, 2), (8, 6, 6), (1, 1, 1), "valid"),
    ((1, 2, 90, 130), (2, 3), (1, 1), "same"),  # rows in blocks
    ((1, 3, 6, 1100), (3, 3), (1, 2), ((1, 1), (0, 1))),  # channels in blocks
    ((1, 13, 12, 1), (25, 24), (1, 1), "same"),  # more windows over a pixel than are gathered at once
    ((1, 300, 3, 2), (150, 1), (1, 1), "valid"),  # the same below each other
]
IDS = ["{}-{}-{}-{}".format(*case).replace(" ", "") for case in CASES]


def distinct(*shape):
    """Values that are all different, and far enough apart for finite differences."""
    count = int(np.prod(shape))
    return (np.random.default_rng(2).permutation(count).reshape(shape) - count / 2) / 128


@pytest.mark.parametrize(("shape", "pool_size", "strides", "padding"), CASES, ids=IDS)
def test_max_pool(shape, pool_size, strides, padding):
    op = MaxPool(pool_size, strides, padding)
    check_op(op, distinct(*shape), reference=lambda x: reference.max_pool(x, pool_size, strides or pool_size, padding))


@pytest.mark.parametrize(("shape", "pool_size", "strides", "padding"), CASES, ids=IDS)
@pytest.mark.parametrize("count_include_pad", [False, True])
def test_average_pool(shape, pool_size, strides, padding, count_include_pad):
    op = AveragePool(pool_size, strides, padding, count_include_pad)
    args = (pool_size, strides or pool_size, padding, count_include_pad)
    check_op(op, distinct(*shape), reference=lambda x: reference.average_pool(x, *args))


@pytest.mark.parametrize(
    ("shape", "output_size"),
    [((2, 11, 5), (4,)), ((2, 6, 7, 17), (3, 5)), ((1, 5, 4, 6, 3), (2, 4, 5)), ((1, 40, 40, 2), (2, 1))],
    ids=str,
)
def test_adaptive_pools(shape, output_size):
    check_op(
        AdaptiveMaxPool(output_size), distinct(*shape), reference=lambda x: reference.adaptive(x, output_size, np.max)
    )
    check_op(
        AdaptiveAveragePool(output_size),
        distinct(*shape),
        reference=lambda x: reference.adaptive(x, output_size, np.mean),
    )


@pytest.mark.parametrize(
    "shape", [(2, 3, 4, 5), (3, 31, 23, 3), (3, 9, 9, 1), (1, 2100, 8), (2, 5, 17), (1, 2, 2, 2, 300)], ids=str
)
@pytest.mark.parametrize("keepdims", [False, True])
def test_global_pools(shape, keepdims):
    axes = tuple(range(1, len(shape) - 1))
    check_op(GlobalAveragePool(keepdims), distinct(*shape), reference=lambda x: x.mean(axes, keepdims=keepdims))
    check_op(GlobalMaxPool(keepdims), distinct(*shape), reference=lambda x: x.max(axes, keepdims=keepdims))


@pytest.mark.parametrize(
    ("op", "rtol"),
    [
        (MaxPool((3, 3), (2, 2), "same"), 1e-4),
        pytest.param(AveragePool((3, 3), (2, 2), "same"), 1e-5, marks=pytest.mark.slow),
        pytest.param(GlobalAveragePool(), 1e-5, marks=pytest.mark.slow),
        pytest.param(GlobalMaxPool(), 1e-4, marks=pytest.mark.slow),
    ],
    ids=["max", "average", "global average", "global max"],
)
def test_several_threads(op, rtol):
    check_op(op, distinct(4, 32, 31, 24), rtol_gradient=rtol)


def test_the_first_of_equal_maxima_gets_the_gradient():
    result = check_op_without_differences(MaxPool((2, 2)), np.ones((1, 4, 4, 2)))
    expected = np.zeros((1, 4, 4, 2))
    expected[:, ::2, ::2] = 1
    np.testing.assert_array_equal(result, expected)


def check_op_without_differences(op, x):
    """dx for dy = 1."""
    from tests.ops.runner import Options, run_op

    ones = np.ones(op.infer(Spec(x.shape, "float64")).shape)
    return run_op(op, [x], [ones], [True], Options()).dx[0]


def test_nan_wins():
    x = distinct(1, 4, 4, 20)
    x[0, 1, 2, 7] = np.nan
    for op in (MaxPool((2, 2)), MaxPool((3, 3), (1, 1), "same"), GlobalMaxPool()):
        y = compute(op, x)
        assert np.isnan(y).any()
        assert not np.isnan(np.delete(y, 7, axis=-1)).any()


def test_a_window_of_more_than_256_pixels():
    x = distinct(1, 20, 20, 3)
    op = MaxPool((17, 17), (1, 1))
    assert op.saves(Spec(x.shape, "float64"), training=True)["argmax"].dtype == "int32"
    check_op(op, x, reference=lambda x: reference.max_pool(x, (17, 17), (1, 1), "valid"))


def test_training_keeps_one_byte_for_each_output():
    spec = Spec((2, 8, 8, 3))
    saves = MaxPool((3, 3), (2, 2)).saves(spec, training=True)
    assert saves["argmax"].nbytes == 2 * 3 * 3 * 3
    assert not MaxPool((3, 3)).saves(spec, training=False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MaxPool((0, 2)), "pool_size"),
        (lambda: MaxPool((2, 2), padding="full"), "'full'"),
        (lambda: AveragePool((2, 2), padding=((2, 0), (0, 0))), "less than the pool_size"),
        (lambda: MaxPool((5, 5))(distinct(1, 4, 4, 1)), "does not fit"),
        (lambda: MaxPool((2, 2))(distinct(4, 4)), r"\(n, h, w, c\)"),
        (lambda: GlobalMaxPool()(distinct(4, 4)), "three or more"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


#: id, ih, iw, taps, stride, padding before, channels
POSITIONS = [
    (1, 7, 6, 3, 1, 1, 19),
    (1, 8, 9, 3, 2, 1, 70),
    (1, 9, 8, 3, 2, 0, 16),
    (1, 7, 5, 2, 1, 0, 33),
    (1, 6, 7, 2, 2, 0, 64),
    (1, 8, 8, 2, 3, 1, 5),
    (1, 9, 9, 3, 4, 2, 3),
    (2, 5, 5, 3, 1, 1, 17),
    (1, 9, 9, 4, 2, 1, 20),
]


def values_with_ties(rng: np.random.Generator, shape: tuple[int, ...], nan: bool) -> np.ndarray:
    x = rng.integers(-2, 3, shape).astype(np.float64)
    x[rng.random(shape) < 0.1] = -0.0
    x[rng.random(shape) < 0.03] = -np.inf
    if nan:
        x[rng.random(shape) < 0.01] = np.nan
    return x


def bits_of(x: np.ndarray, dtype: str) -> np.ndarray:
    """The elements of images in memory; those of bfloat16, whose numbers here are exact, are its bits."""
    if dtype == "bfloat16":
        return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return x.astype(dtype)


def expected(
    x: np.ndarray, dy: np.ndarray, taps: int, stride: int, before: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y, positions and dx, window by window; the first maximum, and the last NaN."""
    ih, iw = x.shape[2:4]
    oh, ow = dy.shape[2:4]
    y, positions, dx = np.empty(dy.shape), np.zeros(dy.shape, np.uint8), np.zeros(x.shape)
    for i, j in np.ndindex(oh, ow):
        best, place = np.full(y[:, :, i, j].shape, -np.inf), np.full(y[:, :, i, j].shape, -1)
        for p, q in np.ndindex(taps, taps):
            h, w = i * stride - before + p, j * stride - before + q
            if 0 <= h < ih and 0 <= w < iw:
                value = x[:, :, h, w]
                greater = (place < 0) | (value > best) | np.isnan(value)
                best, place = np.where(greater, value, best), np.where(greater, p * taps + q, place)
        y[:, :, i, j], positions[:, :, i, j] = best, place
        for p, q in np.ndindex(taps, taps):
            h, w = i * stride - before + p, j * stride - before + q
            if 0 <= h < ih and 0 <= w < iw:
                dx[:, :, h, w] += np.where(place == p * taps + q, dy[:, :, i, j], 0)
    return y, positions, dx


@pytest.mark.parametrize("case", POSITIONS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("nan", [False, True], ids=["numbers", "nan"])
def test_positions(case, dtype, nan):
    depth, ih, iw, taps, stride, before, c = case
    n, oh, ow = 3, (ih + 2 * before - taps) // stride + 1, (iw + 2 * before - taps) // stride + 1
    rng = np.random.default_rng(1)
    x, dy = values_with_ties(rng, (n, depth, ih, iw, c), nan), rng.integers(-8, 9, (n, depth, oh, ow, c)) * 1.0
    y, positions, dx = expected(x, dy, taps, stride, before)
    window = pooling.PoolWindow(n, ih, iw, c, oh, ow, taps, taps, stride, stride, before, before, depth, depth, 1, 1, 0)

    def rows(a: np.ndarray, beside: int) -> np.ndarray:
        """As rows that lie apart, of a wider array."""
        wide = np.full((a.size // c, c + beside), np.nan)
        wide[:, :c] = a.reshape(-1, c)
        return bits_of(wide, dtype)[:, :c]

    before_threads = runtime.get_num_threads()
    try:
        for threads, beside in ((1, 0), (2, 5)):
            runtime.set_num_threads(threads)
            to, found = rows(np.full(y.shape, np.nan), beside), np.full(y.size, 255, np.uint8)
            pooling.bind_max_pool(window, rows(x, beside), to, found, 1)()
            np.testing.assert_array_equal(to, rows(y, 0))
            np.testing.assert_array_equal(found, positions.ravel())
            pooling.bind_max_pool(window, rows(x, beside), to, None, 1)()
            np.testing.assert_array_equal(to, rows(y, 0))
            for accumulate in (False, True):
                gradient = rows(np.full(dx.shape, 1.0 if accumulate else np.nan), beside)
                pooling.bind_max_pool_backward(window, rows(dy, beside), found, 1, accumulate, gradient)()
                np.testing.assert_array_equal(gradient, rows(dx + accumulate, 0))
    finally:
        runtime.set_num_threads(before_threads)
