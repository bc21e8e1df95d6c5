"""Sums, means and extrema over any axes; accuracy of long sums."""

import itertools

import numpy as np
import pytest

from pydtconv import ops
from pydtconv.kernels import scratch
from pydtconv.kernels.cpu.strided import bind_reduce, reduction_workspace
from pydtconv.ops.reduction import ArgMax, Max, Mean, Min, Sum
from tests.ops.harness import check_op, normal

REDUCTIONS = {Sum: np.sum, Mean: np.mean, Max: np.max, Min: np.min}
CASES = [
    ((2, 3, 4, 5), None),
    ((2, 3, 4, 5), (1, 2)),
    ((2, 3, 4, 5), -1),
    ((2, 3, 4, 5), (0, 1, 2)),
    ((2, 3, 4, 5), 0),
    ((2, 3, 4, 5), (0, 2)),
    ((2, 3, 4, 5), (1, 3)),
    ((2, 3, 4, 1), (1, 2)),
    ((7,), 0),
    ((3, 1, 5), 1),
    ((4, 5), ()),
    ((40, 31, 30), (0, 1)),
    ((30, 1300), 1),
    ((1300, 30), 0),
    ((40000,), None),
]


@pytest.mark.parametrize(("shape", "axis"), CASES, ids=str)
@pytest.mark.parametrize("op", REDUCTIONS, ids=lambda op: op.__name__)
def test_reduction(op, shape, axis):
    x = (
        np.random.default_rng(4).permutation(int(np.prod(shape))).reshape(shape) / np.prod(shape)
        + normal(*shape) * 1e-4
    )
    for keepdims in (False, True):
        check_op(
            op(axis, keepdims),
            x,
            reference=lambda x, k=keepdims: REDUCTIONS[op](x, axis=axis, keepdims=k),
            step=1e-7,
            rtol_gradient=1e-5,
        )
        if x.size > 1000:
            break


def test_equal_elements_share_the_gradient():
    x = np.array([[1.0, 3, 3, 2], [5, 5, 5, 5]])
    result = check_op(Max(1), x, rtol_gradient=10)
    np.testing.assert_allclose((result.dx[0] != 0).sum(1), [2, 4])
    np.testing.assert_allclose(result.dx[0][1], result.dx[0][1, 0])


@pytest.mark.parametrize(("shape", "axis"), [((1 << 20,), 0), ((1 << 18, 4), 0), ((4, 1 << 18), 1)], ids=str)
def test_long_sums_are_accurate(shape, axis):
    x = np.random.default_rng(0).random(shape, "float32")
    want = x.astype("float64").sum(axis)
    assert np.abs(ops.sum(x, axis) / want - 1).max() < 1e-6


def test_argmax_and_statistics():
    x = normal(3, 4, 5)
    check_op(ArgMax(1), x, reference=lambda x: x.argmax(1))
    check_op(ArgMax(-1, True), x, reference=lambda x: x.argmax(-1, keepdims=True))
    assert ops.argmax(x) == x.argmax()
    assert {ops.argmax(x).dtype.name, ops.argmax(x, 0, True).dtype.name, ops.argmin(x).dtype.name} == {"int32"}
    assert ops.argmax(np.array([1 << 24, (1 << 24) + 1])) == 1  # equal in float32
    np.testing.assert_allclose(ops.var(x, (0, 1)), x.var((0, 1)))
    np.testing.assert_allclose(ops.std(x), x.std())


def test_of_nothing():
    """A mean is NaN, as in NumPy, and there is no largest element but one that is given."""
    x = np.zeros((2, 0, 3), "float32")
    for function in (ops.mean, ops.var, ops.std):
        y = function(x, (1,), keepdims=True)
        np.testing.assert_array_equal(y, np.full((2, 1, 3), np.nan, "float32"))
    assert ops.mean(x, 0).shape == ops.max(x, 0).shape == (0, 3)
    assert np.isnan(ops.mean(np.zeros(0, "int32")))
    for function in (ops.max, ops.min, ops.amax, ops.amin, ops.ptp):
        for nothing in (x, x.astype("int32")):
            with pytest.raises(ValueError, match=r"expected one element or more, got none: shape \(2, 0, 3\)"):
                function(nothing, 1)
    np.testing.assert_array_equal(ops.max(x, 1, initial=2.0), np.full((2, 3), 2))
    np.testing.assert_array_equal(ops.min(x, initial=2.0), 2)
    np.testing.assert_array_equal(ops.logsumexp(x, 1), np.full((2, 3), -np.inf))


def test_errors():
    with pytest.raises(ValueError, match="sum: expected axes between -2 and 1, got 2"):
        ops.sum(normal(2, 3), 2)
    with pytest.raises(ValueError, match="mean: expected each axis once"):
        ops.mean(normal(2, 3), (1, -1))


@pytest.mark.parametrize("sliced", list(itertools.product((False, True), repeat=3)), ids=str)
@pytest.mark.parametrize("shape", [(2, 3, 4, 1), (2, 1, 4, 1), (2, 3, 4, 5), (1, 40, 300, 1), (3, 7, 1, 1)], ids=str)
def test_sums_of_products_of_slices_and_dense_images(shape, sliced):
    """As the gradient of a factor is, where some of the arrays are channels of a concatenation."""

    def image(extents, of_more, seed):
        whole = normal(*extents[:-1], extents[-1] + 3 * of_more, seed=seed)
        return whole[..., 2 * of_more : 2 * of_more + extents[-1]]

    x, x2 = image(shape, sliced[0], 1), image(shape, sliced[1], 2)
    for axes in (axes for count in (1, 2, 3) for axes in itertools.combinations(range(4), count)):
        y = image([1 if d in axes else n for d, n in enumerate(shape)], sliced[2], 3)
        bind_reduce("sum", axes, x, y, scratch(reduction_workspace(shape, axes, "float64")), x2=x2)()
        np.testing.assert_allclose(y, (x * x2).sum(axes, keepdims=True), rtol=1e-10, atol=1e-10)
