"""Arguments of a layer's call by place and by name."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers


class _Shown(layers.Layer):
    def call(self, inputs, training=None, mask=None):
        return inputs * (3.0 if training else 1.0)


class _Several(layers.Layer):
    def call(self, *inputs, training=None):
        return inputs[0] + inputs[1] * (3.0 if training else 1.0)


def _of_inputs(layer):
    x = pydtconv.Input((2,))
    return pydtconv.Model(x, layer(x))


MODELS = {
    "layer": lambda: _Shown(),
    "sequential": lambda: pydtconv.Sequential([pydtconv.Input((2,)), _Shown()]),
    "sequential without inputs": lambda: pydtconv.Sequential([_Shown()]),
    "functional": lambda: _of_inputs(_Shown()),
}


@pytest.mark.parametrize("name", MODELS)
def test_training_by_place(name):
    """`model(x, True)` is `model(x, training=True)`: on arrays, in another model, on a tape."""
    model, x = MODELS[name](), np.ones((1, 2), "float32")

    class Outer(pydtconv.Model):
        def __init__(self):
            super().__init__()
            self.inner = model

        def call(self, inputs, training=None):
            return self.inner(inputs, training)

    for call in (model, Outer()):
        np.testing.assert_array_equal(call(x, True), 3 * x)
        np.testing.assert_array_equal(call(x, False), x)
        with pydtconv.GradientTape():
            np.testing.assert_array_equal(np.asarray(call(x, True)), 3 * x)
    inputs = pydtconv.Input((2,))
    np.testing.assert_array_equal(pydtconv.Model(inputs, model(inputs, True)).predict(x, verbose=0), 3 * x)


def test_free_places_are_inputs():
    x = np.ones((1, 2), "float32")
    np.testing.assert_array_equal(_Several()(x, x), 2 * x)
    np.testing.assert_array_equal(_Several()(x, x, training=True), 4 * x)
