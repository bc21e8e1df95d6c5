"""`build` as Keras's users write it."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers


class Scaled(layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.inner = layers.Dense(units)

    def build(self, shape):  # no input_shape
        self.scale = self.add_weight(shape=(self.units,), initializer="ones", name="scale")
        self.inner.build(shape)
        super().build(shape)

    def call(self, x):
        assert x.ndim == 2
        return self.inner(x) * self.scale

    def get_config(self):
        return {**super().get_config(), "units": self.units}


class Net(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.first, self.last = Scaled(4), layers.Dense(2)

    def build(self, input_shape):
        super().build(input_shape)

    def call(self, x):
        return self.last(self.first(x))


@pytest.mark.parametrize("make", [lambda: keras.Sequential([keras.Input((3,)), Scaled(2)]), Net])
def test_build_that_calls_the_one_above(make, tmp_path):
    model, x = make(), np.ones((2, 3), "float32")
    y = model(x)
    assert [layer.built for layer in model.layers] == [True] * len(model.layers)
    model.save(tmp_path / "net.keras")
    again = keras.saving.load_model(tmp_path / "net.keras", custom_objects={"Scaled": Scaled, "Net": Net})
    np.testing.assert_array_equal(again(x), y)


def test_a_layer_makes_its_weights_once():
    layer = layers.Dense(3)
    layer.build((None, 4))
    kernel = layer.kernel
    for shape in ((None, 4), (None, 5)):
        with pytest.raises(ValueError, match="build: the layer is built already"):
            layer.build(shape)
    assert len(layer.weights) == 2
    assert layer.kernel is kernel
    assert layer(np.ones((1, 4), "float32")).shape == (1, 3)


def test_a_build_that_fails_leaves_no_weights():
    class Checked(Scaled):
        def build(self, shape):
            super().build(shape)
            self.shift = self.add_weight((self.units,), "zeros", trainable=False, name="shift")
            if shape[-1] != 3:
                raise ValueError(f"expected 3 features, got {shape[-1]}")

    layer = Checked(2)
    with pytest.raises(ValueError, match="expected 3 features, got 4"):
        layer(np.ones((1, 4), "float32"))
    assert not layer.built
    layer.inner = layers.Dense(2)
    layer(np.ones((1, 3), "float32"))
    assert [weight.name for weight in layer.weights] == ["scale", "shift", "kernel", "bias"]


class OwnBuild(keras.Model):
    def build(self, input_shape):
        self.dense = layers.Dense(3)
        super().build(input_shape)

    def call(self, inputs):
        return self.dense(inputs)


class Wrapped(layers.Layer):
    def build(self, input_shape):
        self.dense = layers.Dense(3)

    def call(self, inputs):
        return self.dense(inputs)


def test_what_builds_itself_need_not_take_training():
    x, y = np.ones((4, 5), "float32"), np.ones((4, 3), "float32")
    model = OwnBuild()
    model.compile("sgd", "mse")
    model.fit(x, y, verbose=0)
    assert [w.shape for w in model.weights] == [(5, 3), (3,)]
    assert Wrapped()(keras.Input((5,)), training=False).shape == (None, 3)
    assert Wrapped()(x, training=True).shape == (4, 3)
