"""Softmax and its logarithm."""

import numpy as np
import pytest

from pydtconv import KerasTensor, ops
from pydtconv.kernels import compute
from pydtconv.ops import LogSoftmax, Softmax
from tests.ops.harness import check_op, normal
from tests.reference import softmax as reference

CASES = [
    ((5, 1), -1),
    ((7, 10), -1),
    ((3, 17), 1),
    ((2, 3, 4, 5), -1),
    ((2, 3, 4, 5), 1),
    ((4, 70), 0),
    ((2, 3, 80), 1),
    ((9,), 0),
    ((4, 6, 1), 1),
    ((3, 5, 4, 1), 2),
    ((3, 5, 1, 1), 1),
    ((1, 6, 1), 1),
]


@pytest.mark.parametrize(("shape", "axis"), CASES, ids=str)
def test_softmax(shape, axis):
    check_op(Softmax(axis), 3 * normal(*shape), reference=lambda x: reference.softmax(x, axis))
    check_op(LogSoftmax(axis), 3 * normal(*shape), reference=lambda x: reference.log_softmax(x, axis))


@pytest.mark.parametrize("axis", [0, 1])
def test_several_threads(axis):
    check_op(Softmax(axis), normal(300, 200), rtol_gradient=1e-5)
    check_op(LogSoftmax(axis), normal(300, 200), rtol_gradient=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extreme_values(dtype):
    x = np.array([[1e4, -1e4, 0], [-np.inf, 0, 0], [np.nan, 0, 1], [-1e30, -1e30, -1e30]], dtype)
    y = compute(Softmax(), x)
    expected = np.array([[1, 0, 0], [0, 0.5, 0.5], [np.nan] * 3, [1 / 3] * 3])
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    np.testing.assert_allclose(compute(LogSoftmax(), x[:1]), [[0, -2e4, -1e4]])


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 3e-7), ("float64", 1e-15)])
def test_the_exponential_over_its_whole_range(dtype, rtol):
    """exp(v) appears as softmax([v, 0])[0] / softmax([v, 0])[1]."""
    low = -86 if dtype == "float32" else -700
    v = np.linspace(low, 0, 4001).astype(dtype)
    y = compute(Softmax(), np.stack([v, np.zeros_like(v)], axis=1)).astype("float64")
    np.testing.assert_allclose(y[:, 0] / y[:, 1], np.exp(v.astype("float64")), rtol=2 * rtol)


def test_wrong_axis():
    with pytest.raises(ValueError, match="axis=2"):
        Softmax(2)(normal(3, 4))


@pytest.mark.parametrize("axis", [(1, 2), [0, -1], (1,), None], ids=str)
def test_several_axes_together(axis):
    x = normal(2, 3, 4)
    axes = tuple(range(3)) if axis is None else tuple(axis)
    shares = np.exp(x) / np.exp(x).sum(axes, keepdims=True)
    np.testing.assert_allclose(ops.softmax(x, axis), shares, rtol=1e-12)
    np.testing.assert_allclose(ops.log_softmax(x, axis=axis), np.log(shares), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)], ids=str)
@pytest.mark.parametrize("function", [ops.softmax, ops.log_softmax])
def test_of_nothing(shape, function):
    for axis in range(len(shape)):
        assert function(np.zeros(shape, "float32"), axis=axis).shape == shape


def test_an_axis_of_one_element_is_told():
    for x in (np.ones((3, 1), "float32"), KerasTensor((None, 1))):
        with pytest.warns(UserWarning, match=r"axis -1 of shape \(.*, 1\) has the extent 1"):
            ops.softmax(x)
    ops.softmax(np.ones((1, 3), "float32"))
