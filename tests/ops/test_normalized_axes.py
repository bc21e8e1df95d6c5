"""Layer normalization over any axes, against NumPy."""

import numpy as np
import pytest

import pydtconv as our_keras
from pydtconv import layers, ops

X = np.random.default_rng(6).normal(2, 3, (2, 3, 4, 5)).astype("float32")


def expected(x, axes, gamma, beta, epsilon):
    axes = tuple(sorted(axis % x.ndim for axis in axes))
    wide = [extent if d in axes else 1 for d, extent in enumerate(x.shape)]
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    return y * gamma.reshape(wide) + beta.reshape(wide)


@pytest.mark.parametrize("axis", [1, -2, (1, 2), (-1, 1), [3, 1], (1, 2, 3)])
def test_any_axes(axis):
    axes = [axis] if isinstance(axis, int) else sorted(axis)
    shape = tuple(X.shape[a] for a in axes)
    gamma, beta = np.random.default_rng(7).normal(size=(2, *shape)).astype("float32")
    wanted = expected(X, axes, gamma, beta, 0.01)
    np.testing.assert_allclose(ops.layer_normalization(X, gamma, beta, axis, 0.01), wanted, rtol=1e-4, atol=1e-5)
    layer = layers.LayerNormalization(axis=axis, epsilon=0.01)
    layer.build(X.shape)
    layer.set_weights([gamma, beta])
    np.testing.assert_allclose(layer(X), wanted, rtol=1e-4, atol=1e-5)
    inputs = our_keras.Input(X.shape[1:])
    model = our_keras.Model(inputs, layer(inputs))
    np.testing.assert_allclose(model.predict(X, verbose=0), wanted, rtol=1e-4, atol=1e-5)


def test_without_the_mean_over_the_first_axes():
    layer = layers.LayerNormalization(axis=1, rms_scaling=True)
    layer.build(X.shape)
    gamma = np.array([1.0, 2.0, 3.0], "float32")
    layer.set_weights([gamma])
    wanted = X / np.sqrt(X.var(1, keepdims=True) + 0.001) * gamma[:, None, None]
    np.testing.assert_allclose(layer(X), wanted, rtol=1e-4, atol=1e-5)
    with pytest.warns(UserWarning, match="rms_scaling is deprecated"):
        found = ops.layer_normalization(X, gamma, axis=1, epsilon=0.001, rms_scaling=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_axes_that_come_twice_are_refused():
    with pytest.raises(ValueError, match=r"expected different axes, got \[1, -3\]"):
        layers.LayerNormalization(axis=[1, -3]).build(X.shape)
