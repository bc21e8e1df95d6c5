"""`GradientTape.jacobian` and `batch_jacobian`, against derivatives written by hand."""

import numpy as np
import pytest

from pydtconv import GradientTape, function, layers, ops


@pytest.fixture
def dense():
    layer = layers.Dense(3, activation="tanh")
    layer.build((None, 4))
    return layer


def expected(layer, x):
    """(n, 3, 4): the derivative of tanh(x w + b) by x, sample by sample."""
    y = np.tanh(x @ layer.kernel.numpy() + layer.bias.numpy())
    return (1 - y**2)[:, :, None] * layer.kernel.numpy().T


def derivatives(layer, x):
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = layer(x)
    return tape.jacobian(y, x), tape.batch_jacobian(y, x), tape.jacobian(y, layer.trainable_variables)


@pytest.mark.parametrize("run", [derivatives, lambda *args: function(derivatives)(*args)], ids=["written", "traced"])
def test_derivatives_of_a_dense_layer(dense, run):
    x = np.random.default_rng(0).normal(size=(2, 4)).astype("float32")
    whole, by_sample, (by_kernel, by_bias) = map(_as_arrays, run(dense, x))
    wanted = expected(dense, x)
    np.testing.assert_allclose(by_sample, wanted, rtol=1e-5, atol=1e-6)
    assert whole.shape == (2, 3, 2, 4)
    np.testing.assert_allclose(whole[[0, 1], :, [0, 1]], wanted, rtol=1e-5, atol=1e-6)
    assert not whole[0, :, 1].any()
    slope = 1 - np.tanh(x @ dense.kernel.numpy() + dense.bias.numpy()) ** 2
    np.testing.assert_allclose(by_bias, np.einsum("nj,jk->njk", slope, np.eye(3)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(by_kernel, np.einsum("nj,ni,jk->njik", slope, x, np.eye(3)), rtol=1e-5, atol=1e-6)


def _as_arrays(value):
    return [np.asarray(each) for each in value] if isinstance(value, list) else np.asarray(value)


def test_a_jacobian_inside_another_tape_is_differentiated():
    x = np.array([1.0, 2.0, 3.0], "float32")
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as inner:
            inner.watch(x)
            y = ops.power(x, 3.0)
        squares = ops.sum(inner.jacobian(y, x) ** 2)  # sum of (3 x^2)^2
    np.testing.assert_allclose(outer.gradient(squares, x), 36 * x**3, rtol=1e-5)


def test_unconnected_sources(dense):
    x, other = np.ones((2, 4), "float32"), np.ones(5, "float32")
    with GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = dense(x)
    assert tape.jacobian(y, other) is None
    assert tape.jacobian(y, other, unconnected_gradients="zero").shape == (2, 3, 5)
    with pytest.raises(ValueError, match=r"batch_jacobian: expected target and source of one batch size, .*\(5,\)"):
        tape.batch_jacobian(y, other)
