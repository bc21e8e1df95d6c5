"""Operators written in NumPy."""

import numpy as np
import pytest

from pydtconv import ops
from pydtconv.kernels import compute
from pydtconv.ops.custom import NumpyOp
from pydtconv.ops.functions.softmax import _sparsemax_backward, _sparsemax_forward
from tests.ops.harness import check_op, normal


def test_one_input():
    op = NumpyOp(np.sin, lambda dy, x, y: dy * np.cos(x))
    assert np.array_equal(compute(op, normal(3, 4)), np.sin(normal(3, 4)))
    check_op(op, normal(2, 3, 4, 5), reference=np.sin)


def test_several_inputs_and_another_shape():
    op = NumpyOp(
        lambda a, b: (a * b).sum(-1),
        lambda dy, a, b, y: (dy[..., None] * b, dy[..., None] * a),
        lambda a, b: a[:-1],
        label="rowdot",
    )
    assert op.name == "rowdot"
    check_op(op, normal(3, 4), normal(3, 4, seed=2), reference=lambda a, b: (a * b).sum(-1))


def test_an_input_without_a_gradient():
    op = NumpyOp(lambda a, b: a * b, lambda dy, a, b, y: (dy * b, None))
    assert not check_op(op, normal(3), normal(3, seed=2), needs=(True, False)).dx[1]


@pytest.mark.parametrize("axis", [-1, 1])
def test_sparsemax(axis):
    x = normal(4, 5, 6)
    y = ops.sparsemax(x, axis)
    np.testing.assert_allclose(y.sum(axis), 1)
    # the nearest point: moving weight to another coordinate leads away from x
    slope = np.where(y > 0, y - x, -np.inf).max(axis, keepdims=True)
    assert (y - x >= slope - 1e-12).all()
    op = NumpyOp(_sparsemax_forward, _sparsemax_backward)
    check_op(op, x)


def test_errors():
    with pytest.raises(ValueError, match=r"forward: expected an array of shape \(3,\), got \(\)"):
        NumpyOp(np.sum)(normal(3))
    with pytest.raises(NotImplementedError, match="no backward function"):
        check_op(NumpyOp(np.sin), normal(3))
    with pytest.raises(ValueError, match="expected 1 gradients, got 2"):
        check_op(NumpyOp(np.sin, lambda dy, x, y: (dy, dy)), normal(3))
