"""XLA's operators by tensorflow's names, beside NumPy."""

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("error")
X = np.arange(12, dtype="float32").reshape(3, 4)


@pytest.fixture
def xla(tf):
    from tensorflow.compiler.tf2xla.python import xla

    return xla


def same(found, expected):
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_windows_are_moved_inside_and_may_begin_at_a_tensor(tf, xla):
    for begin, at in ((1, 1), (3, 2), (-4, 0)):
        expected = X.copy()
        expected[at : at + 1, 1:3] = [[-1, -2]]
        same(xla.dynamic_update_slice(X, np.float32([[-1, -2]]), [begin, 1]), expected)
        found = tf.function(lambda x, i: xla.dynamic_slice(x, [i, 1], [1, 2]))(tf.constant(X), tf.constant(begin))
        same(found, X[at : at + 1, 1:3])
    with pytest.raises(ValueError, match=r"a window inside of \(3, 4\), got one of shape \(1, 5\)"):
        xla.dynamic_slice(X, [0, 0], [1, 5])


def test_operands_of_different_ranks_name_their_axes(xla):
    for name, function in {"add": np.add, "sub": np.subtract, "max": np.maximum, "lt": np.less}.items():
        same(getattr(xla, name)(X, X[:, 0], broadcast_dims=[0]), function(X, X[:, :1]))
        same(getattr(xla, name)(X[0], X, broadcast_dims=[1]), function(X[0], X))
        same(getattr(xla, name)(X, 3.0), function(X, 3))
        with pytest.raises(ValueError, match=rf"xla\.{name}: broadcast_dims: expected an axis for each"):
            getattr(xla, name)(X, X[:, 0])


def test_each_name_is_there_and_gives_its_value(xla):
    expected = {
        "broadcast": (X, [2]), "clamp": (2.0, X, 5.0), "dot": (X, X.T), "reshape": (X, [4, 3], [1, 0]),
        "slice": (X, [0, 1], [3, 4], [2, 2]), "rem": (np.int32([-5, 5]), np.int32(3)), "select": (X > 3, X, -X),
        "rev": (X, [1]), "transpose": (X, [1, 0]), "sort": (-X,), "neg": (X,), "concatenate": ([X, X], 1),
        "einsum": (X, X.T, "ab,bc->ac"), "shift_left": (np.int32([1, 2]), np.int32(3)),
    }  # fmt: skip
    values = [
        np.stack([X, X]), X.clip(2, 5), X @ X.T, X.T.reshape(4, 3), X[::2, 1::2], [-2, 2], np.where(X > 3, X, -X),
        X[:, ::-1], X.T, -X[:, ::-1], -X, np.concatenate([X, X], 1), X @ X.T, [8, 16],
    ]  # fmt: skip
    for (name, arguments), value in zip(expected.items(), values, strict=True):
        same(getattr(xla, name)(*arguments), value)
    assert xla.random_uniform(2.0, 3.0, [5]).shape == xla.random_normal(0.0, 1.0, [5]).shape == (5,)
    with pytest.raises(AttributeError, match=r"no tensorflow\.compiler\.tf2xla\.python\.xla\.conv: .*functions of tf"):
        xla.conv()
