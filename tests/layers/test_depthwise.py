"""Depthwise and separable convolutions with strides of their own along each axis, beside grouped convolutions."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, Model, layers, ops


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("strides", [(2, 1), (1, 3)])
def test_strides_that_differ(strides, padding):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 9, 8, 3)).astype("float32"), rng.normal(size=(3, 3, 3, 2)).astype("float32")
    mine = layers.DepthwiseConv2D(3, strides, padding, depth_multiplier=2, use_bias=False)
    grouped = layers.Conv2D(6, 3, strides, padding, groups=3, use_bias=False)
    results = []
    for layer, filters in ((mine, w), (grouped, w.reshape(3, 3, 1, 6))):
        layer.build(x.shape)
        layer.set_weights([filters])
        with GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
            loss = ops.sum(ops.square(y))
        dx, dw = tape.gradient(loss, [x, layer.trainable_variables[0]])
        results.append((y.numpy(), dx.numpy(), dw.numpy().reshape(3, 3, 3, 2)))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_network_with_such_strides_trains_and_is_saved(tmp_path):
    inputs = keras.Input((9, 8, 3))
    y = layers.SeparableConv2D(4, 3, strides=(2, 1))(layers.DepthwiseConv2D(3, strides=(1, 2))(inputs))
    model = Model(inputs, layers.GlobalAveragePooling2D()(y))
    model.compile("sgd", "mse")
    x = np.random.default_rng(1).normal(size=(4, 9, 8, 3)).astype("float32")
    first, *_, last = model.fit(x, np.zeros((4, 4)), epochs=5, verbose=0).history["loss"]
    assert last < first
    model.save(tmp_path / "net.keras")
    again = keras.models.load_model(tmp_path / "net.keras")
    np.testing.assert_array_equal(again.predict(x, verbose=0), model.predict(x, verbose=0))
