"""Layer normalization: axes, parameters, precision."""

import numpy as np
import pytest

import pydtconv as our_keras
from pydtconv import layers, ops
from pydtconv.kernels import compute
from pydtconv.ops import LayerNorm
from tests.ops.harness import check_op, normal
from tests.reference import normalization as reference

CASES = [
    ((6, 2), -1),
    ((5, 17), -1),
    ((2, 3, 4, 5), -1),
    ((2, 3, 4, 5), (-2, -1)),
    ((2, 3, 4, 5), (1, 2, 3)),
    ((9, 33), 1),
]


@pytest.mark.parametrize(("shape", "axis"), CASES, ids=str)
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [False, True])
def test_layer_norm(shape, axis, scale, center):
    axes = (axis,) if isinstance(axis, int) else axis
    inner = tuple(shape[a] for a in axes)
    gamma, beta = normal(*inner, seed=2), normal(*inner, seed=3)

    def expected(x, *rest):
        return reference.layer_norm(x, gamma if scale else 1.0, beta if center else 0.0, axes)

    arrays = [2 * normal(*shape), *[gamma] * scale, *[beta] * center]
    check_op(LayerNorm(axis, scale=scale, center=center), *arrays, reference=expected, rtol=2e-4)


def test_by_the_root_mean_square():
    def expected(x, gamma):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gamma

    check_op(LayerNorm(-1, 1e-6, center=False, rms=True), normal(19, 33), normal(33, seed=2), reference=expected)


def test_several_threads():
    check_op(LayerNorm(), normal(700, 96), normal(96, seed=2), normal(96, seed=3), rtol_gradient=1e-5)


def test_far_from_zero():
    x = (np.random.default_rng(1).standard_normal((3, 5000)) + 1e4).astype("float32")
    y = compute(LayerNorm(scale=False, center=False, epsilon=0.0), x)
    want = reference.layer_norm(x.astype("float64"), 1.0, 0.0, (1,), 0.0)
    np.testing.assert_allclose(y, want, atol=2e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LayerNorm(1)(normal(2, 3, 4), normal(3), normal(3)), "last axis or axes"),
        (lambda: LayerNorm()(normal(2, 3), normal(2), normal(3)), r"gamma must have shape \(3,\)"),
        (lambda: LayerNorm()(normal(2, 3)), "expected the inputs x, gamma, beta"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


WIDE = np.random.default_rng(6).normal(2, 3, (2, 3, 4, 5)).astype("float32")


def normalized(x, axes, gamma, beta, epsilon):
    axes = tuple(sorted(axis % x.ndim for axis in axes))
    wide = [extent if d in axes else 1 for d, extent in enumerate(x.shape)]
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    return y * gamma.reshape(wide) + beta.reshape(wide)


@pytest.mark.parametrize("axis", [1, -2, (1, 2), (-1, 1), [3, 1], (1, 2, 3)])
def test_any_axes(axis):
    axes = [axis] if isinstance(axis, int) else sorted(axis)
    shape = tuple(WIDE.shape[a] for a in axes)
    gamma, beta = np.random.default_rng(7).normal(size=(2, *shape)).astype("float32")
    wanted = normalized(WIDE, axes, gamma, beta, 0.01)
    np.testing.assert_allclose(ops.layer_normalization(WIDE, gamma, beta, axis, 0.01), wanted, rtol=1e-4, atol=1e-5)
    layer = layers.LayerNormalization(axis=axis, epsilon=0.01)
    layer.build(WIDE.shape)
    layer.set_weights([gamma, beta])
    np.testing.assert_allclose(layer(WIDE), wanted, rtol=1e-4, atol=1e-5)
    inputs = our_keras.Input(WIDE.shape[1:])
    model = our_keras.Model(inputs, layer(inputs))
    np.testing.assert_allclose(model.predict(WIDE, verbose=0), wanted, rtol=1e-4, atol=1e-5)


def test_without_the_mean_over_the_first_axes():
    layer = layers.LayerNormalization(axis=1, rms_scaling=True)
    layer.build(WIDE.shape)
    gamma = np.array([1.0, 2.0, 3.0], "float32")
    layer.set_weights([gamma])
    wanted = WIDE / np.sqrt(WIDE.var(1, keepdims=True) + 0.001) * gamma[:, None, None]
    np.testing.assert_allclose(layer(WIDE), wanted, rtol=1e-4, atol=1e-5)
    with pytest.warns(UserWarning, match="rms_scaling is deprecated"):
        found = ops.layer_normalization(WIDE, gamma, axis=1, epsilon=0.001, rms_scaling=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_axes_that_come_twice_are_refused():
    with pytest.raises(ValueError, match=r"expected different axes, got \[1, -3\]"):
        layers.LayerNormalization(axis=[1, -3]).build(WIDE.shape)
