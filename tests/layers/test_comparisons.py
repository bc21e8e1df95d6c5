"""`==` and `!=` of tensors: element by element where values are compared, as `ops.equal` does."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops

X = np.array([[1.0, 0.0, -2.0, 3.0]], "float32")


class Compares(layers.Layer):
    def __init__(self, compare):
        super().__init__()
        self.compare = compare
        self.scale = self.add_weight((4,), "ones")

    def call(self, x):
        return ops.cast(self.compare(x, self.scale), "float32")


@pytest.mark.parametrize(
    ("compare", "expected"),
    [
        (lambda x, w: x == ops.relu(x), [1, 1, 0, 1]),
        (lambda x, w: x != ops.relu(x), [0, 0, 1, 0]),
        (lambda x, w: x == w, [1, 0, 0, 0]),
        (lambda x, w: w != x, [0, 1, 1, 1]),
        (lambda x, w: ops.logical_and(x == w, w == w), [1, 0, 0, 0]),
        (lambda x, w: x == [1, 0, 0, 0], [1, 1, 0, 0]),
    ],
)
def test_in_a_layer(compare, expected):
    layer = Compares(compare)
    inputs = keras.Input((4,))
    model = keras.Model(inputs, layer(inputs))
    np.testing.assert_array_equal(model.predict(X, verbose=0)[0], expected)
    np.testing.assert_array_equal(layer(X)[0], expected)


def test_symbolic_tensors():
    inputs = keras.Input((4,))
    assert inputs == inputs  # identity, as in Keras
    outputs = ops.cast(inputs != 0, "float32") + ops.cast(inputs != ops.relu(inputs), "float32")
    np.testing.assert_array_equal(keras.Model(inputs, outputs).predict(X, verbose=0), [[1, 0, 2, 1]])


def test_variables():
    a, b = keras.Variable(np.arange(3.0)), keras.Variable(np.ones(3))
    np.testing.assert_array_equal(a == b, [False, True, False])
    np.testing.assert_array_equal(a != b, [True, False, True])
