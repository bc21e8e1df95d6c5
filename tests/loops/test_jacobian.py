"""`GradientTape.jacobian` and `batch_jacobian`, against derivatives written by hand."""

import numpy as np
import pytest

from pydtconv import GradientTape, function, layers, ops, tree
from tests.real_keras import import_keras


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


FUNCTIONS = {
    "sin": lambda o, x: o.sin(x),
    "own operators": lambda o, x: x * x + 1.0,
    "sort": lambda o, x: o.sort(x, axis=0),
    "cumsum": lambda o, x: o.cumsum(x * x, axis=0),
    "logsumexp": lambda o, x: o.logsumexp(x, axis=1),
    "scalar": lambda o, x: o.sum(o.exp(x)),
    "structure": lambda o, x: {"a": x * 2.0, "b": [o.tanh(x)]},
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.torch.jit.script. is deprecated:FutureWarning")
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_jvp_of_keras(f):
    keras = import_keras()
    x, t = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    tensor = keras.ops.convert_to_tensor
    wanted = keras.ops.jvp(lambda x: f(keras.ops, x), (tensor(x),), (tensor(t),))
    got = ops.jvp(lambda x: f(ops, x), (x,), (t,))
    for y, want in zip(tree.flatten(got), keras.tree.flatten(wanted), strict=True):
        np.testing.assert_allclose(y, keras.ops.convert_to_numpy(want), rtol=1e-4, atol=1e-5)
        assert np.shape(y) == tuple(want.shape)


def test_jvp_with_several_primals_and_more_results():
    a, b = np.array([[1.0, 2.0]], "float32"), np.array([[3.0], [4.0]], "float32")
    y, dy, aux = ops.jvp(lambda a, b: (ops.matmul(a, b), "aux"), (a, b), (a, 2 * b), has_aux=True)
    assert (float(y), float(dy), aux) == (11, 33, "aux")
    y, dy = ops.jvp(ops.sin, (0.1,), (0.2,))
    np.testing.assert_allclose([float(y), float(dy)], [np.sin(0.1), 0.2 * np.cos(0.1)], rtol=1e-5)
    with pytest.raises(ValueError, match=r"tangents of the primals' shapes \[\(1, 2\)\], got \[\(2, 1\)\]"):
        ops.jvp(ops.sin, (a,), (b,))


@pytest.mark.parametrize("f", [lambda x: ops.multiply(x, np.arange(3.0)), lambda x: ops.power(x, 3.0)])
def test_a_watched_number(f):
    x = np.array(2.0, "float32")
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    slope = tape.gradient(y, x)
    assert np.shape(y) == np.shape(f(np.float32(2)))
    assert np.shape(slope) == ()
    np.testing.assert_allclose(slope, np.sum(f(np.float32(2.001)) - f(np.float32(1.999))) / 0.002, rtol=1e-3)


def test_unconnected_sources(dense):
    x, other = np.ones((2, 4), "float32"), np.ones(5, "float32")
    with GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = dense(x)
    assert tape.jacobian(y, other) is None
    assert tape.jacobian(y, other, unconnected_gradients="zero").shape == (2, 3, 5)
    with pytest.raises(ValueError, match=r"batch_jacobian: expected target and source of one batch size, .*\(5,\)"):
        tape.batch_jacobian(y, other)
