"""Activations by name, their values against Keras's, and along which axes they are."""

import inspect

import numpy as np
import pytest

from pydtconv import Input, Model, activations, layers, ops
from tests.real_keras import import_keras

NAMES = sorted(activations._registry.objects)
X = np.random.default_rng(3).normal(0, 2, (6, 8))
EXTRA = {"threshold": (0.5, 2.0)}


def number(value):
    return value.detach().numpy() if hasattr(value, "detach") else np.asarray(value)


# Keras's sparsemax of some rows here sums to 0 and not to 1; ours is tested with the operators
@pytest.mark.parametrize("name", [name for name in NAMES if name != "sparsemax"])
def test_activation(name):
    keras = import_keras()
    theirs = getattr(keras.activations, "exponential" if name == "exp" else name)
    x = X.astype("float32")
    expected = number(theirs(keras.ops.convert_to_tensor(x), *EXTRA.get(name, ())))
    np.testing.assert_allclose(activations.get(name)(x, *EXTRA.get(name, ())), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [{"negative_slope": 0.1}, {"max_value": 6.0}, {"max_value": 1.5, "negative_slope": 0.2}, {"threshold": 0.7}],
    ids=str,
)
def test_relu_in_general(arguments):
    keras = import_keras()
    x = X.astype("float32")
    expected = number(keras.activations.relu(keras.ops.convert_to_tensor(x), **arguments))
    np.testing.assert_allclose(activations.relu(x, **arguments), expected, rtol=1e-6)


def test_activation_by_name_function_layer_and_none():
    assert activations.get(None) is activations.linear
    assert activations.get("relu") is activations.relu
    assert activations.get(np.tanh) is np.tanh
    assert activations.serialize(activations.relu) == "relu"
    assert activations.serialize(activations.get("swish")) == "silu"
    assert activations.deserialize("relu") is activations.relu
    with pytest.raises(ValueError, match="softmax"):
        activations.get("softmaxx")
    x = Input((4, 4, 2))
    y = layers.Conv2D(2, 1, activation=layers.LeakyReLU(0.5))(x)
    assert Model(x, y)(np.ones((1, 4, 4, 2))).shape == (1, 4, 4, 2)


CONVOLUTIONS = {
    "Conv2D": {"filters": 3},
    "Conv2DTranspose": {"filters": 3},
    "DepthwiseConv2D": {},
    "SeparableConv2D": {"filters": 3},
}


@pytest.mark.parametrize("activation", ["softmax", "log_softmax", lambda y: ops.cumsum(y, axis=1)])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_axes_of_an_activation_are_those_of_the_output(name, activation):
    """In channels_first, too, as in Keras: softmax is over the last axis, the columns there."""
    arguments = {**CONVOLUTIONS[name], "kernel_size": 1, "data_format": "channels_first"}
    plain, layer = (getattr(layers, name)(**arguments, activation=a) for a in (None, activation))
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype("float32")
    plain.build(x.shape)
    layer.build(x.shape)
    layer.set_weights(plain.get_weights())
    expected = activations.get(activation)(plain(x))
    np.testing.assert_allclose(layer(x), expected, atol=1e-6)


@pytest.mark.parametrize("activation", ["softmax", lambda y: ops.cumsum(y, axis=1)])
@pytest.mark.parametrize("equation", ["abc,cde->abde", "abc,cd->abd"])
def test_axes_of_an_activation_in_a_product_of_several_axes(equation, activation):
    shape = (None, 2, 3) if equation.endswith("e") else (None, 6)
    arguments = {"output_shape": shape, "bias_axes": equation.partition("->ab")[2]}
    plain, layer = (layers.EinsumDense(equation, **arguments, activation=a) for a in (None, activation))
    x = np.random.default_rng(0).normal(size=(2, 4, 5)).astype("float32")
    plain.build(x.shape)
    layer.build(x.shape)
    layer.set_weights(plain.get_weights())
    np.testing.assert_allclose(layer(x), activations.get(activation)(plain(x)), atol=1e-6)


def test_docstrings_of_activations():
    for name in NAMES:
        assert inspect.getdoc(activations.get(name)), name
