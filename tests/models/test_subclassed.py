"""Models whose `call` is Python code."""

import numpy as np
import pytest

from pydtconv import Model, layers
from tests.real_keras import import_keras


def make(k):
    class Net(k.Model):
        def __init__(self, width=4):
            super().__init__()
            self.stem = k.layers.Conv2D(width, 3, padding="same")
            self.blocks = []
            self.pool = k.layers.GlobalAveragePooling2D()
            for _ in range(2):
                self.blocks.append(k.layers.Conv2D(width, 3, padding="same"))
            self.norms = {"last": k.layers.BatchNormalization()}

        def call(self, inputs, training=None):
            x = self.stem(inputs)
            for block in self.blocks:
                x = k.layers.add([x, block(x)])
            return self.pool(self.norms["last"](x, training=training))

    return Net


def test_call_builds_and_order_of_weights_is_that_of_keras():
    import pydtconv

    keras = import_keras()
    x = np.random.default_rng(0).normal(size=(2, 6, 6, 3)).astype("float32")
    ours, theirs = make(pydtconv)(), make(keras)()
    assert not ours.built
    assert ours(x).shape == (2, 4)
    theirs(x)
    assert ours.built
    assert [w.shape for w in ours.weights] == [tuple(w.shape) for w in theirs.weights]
    theirs.set_weights(ours.get_weights())
    np.testing.assert_allclose(ours(x), theirs(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_build_with_a_shape():
    import pydtconv

    model = make(pydtconv)()
    model.build((None, 6, 6, 3))
    assert model.built
    assert len(model.trainable_weights) == 2 * 3 + 2
    assert model.layers[0] is model.stem


def test_training_mode():
    import pydtconv

    model = make(pydtconv)()
    x = np.random.default_rng(0).normal(5, 2, size=(8, 6, 6, 3))
    y = model(x, training=True)
    np.testing.assert_allclose(y.mean(), 0, atol=1e-4)
    assert np.abs(model(x, training=False) - y).max() > 1e-3


def test_no_call():
    class Empty(Model):
        pass

    with pytest.raises(NotImplementedError, match="no call"):
        Empty()(np.ones((1, 2)))


def test_config_from_recorded_arguments():
    class Wide(Model):
        def __init__(self, width, **kwargs):
            super().__init__(**kwargs)
            self.conv = layers.Conv2D(width, 1)

        def call(self, inputs):
            return self.conv(inputs)

    copy = Wide.from_config(Wide(7, name="w").get_config())
    assert copy.conv.filters == 7
    assert copy.name == "w"


def test_not_functional_has_no_inputs():
    import pydtconv

    with pytest.raises(AttributeError, match="symbolic"):
        _ = make(pydtconv)().inputs
