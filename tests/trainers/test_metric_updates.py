"""Metrics that are updated inside `compute_loss`, or in a layer's `call`: with the values of each batch."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops
from pydtconv.loops.tape import GradientTape


class WithMetric(keras.Model):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.error = keras.metrics.Mean(name="error")
        self.distance = keras.metrics.MeanAbsoluteError(name="distance")

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = ops.mean((y - y_pred) ** 2)
        self.error.update_state(loss)
        self.distance(y, y_pred)
        return loss


class Watching(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seen = keras.metrics.Mean(name="seen")

    def call(self, x):
        self.seen.update_state(ops.mean(x))
        return x


def a_model(kind=WithMetric):
    inputs = keras.Input((3,))
    model = kind(inputs, layers.Dense(1, kernel_initializer="ones")(inputs))
    model.compile("sgd")
    return model


def test_metrics_of_compute_loss():
    x = np.random.default_rng(0).normal(size=(10, 3)).astype("float32")
    y = x[:, :1] * 2
    model = a_model()
    found = model.evaluate(x, y, batch_size=4, verbose=0, return_dict=True)
    apart = x.sum(1, keepdims=True) - y
    means = [np.mean(apart[i : i + 4] ** 2) for i in (0, 4, 8)]
    assert found["error"] == pytest.approx(np.mean(means), rel=1e-5)  # of batches, as each is one number
    assert found["distance"] == pytest.approx(np.abs(apart).mean(), rel=1e-5)
    history = model.fit(x, y, batch_size=5, epochs=2, validation_data=(x, y), verbose=0).history
    assert history["error"] == pytest.approx(history["loss"], rel=1e-5)
    assert history["val_error"][1] < history["val_error"][0]


def test_metrics_of_layers():
    layer = Watching()
    model = keras.Sequential([keras.Input((3,)), layer, layers.Dense(1)])
    assert layer.seen.result() == 0  # the trace of the shapes has no values
    model.compile("sgd", "mse")
    history = model.fit(np.full((8, 3), 2.0), np.ones((8, 1)), verbose=0).history
    assert history["seen"] == [2.0]
    layer.seen.reset_state()
    layer(np.full((2, 3), 5.0))
    assert layer.seen.result() == 5


def test_a_result_has_no_value_while_it_is_traced():
    class Asks(WithMetric):
        def compute_loss(self, **data):
            return super().compute_loss(**data) + self.error.result()

    with pytest.raises(TypeError, match="result of metric 'error' is not known while it is traced"):
        a_model(Asks).fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)


@pytest.mark.parametrize("traced", [True, False])
def test_metrics_of_bfloat16(traced):
    layer = Watching(dtype="mixed_bfloat16")
    model = keras.Sequential([keras.Input((3,)), layer, layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.full((8, 3), 2.0, "float32")
    if traced:
        assert model.fit(x, np.ones((8, 1)), verbose=0).history["seen"] == [2.0]
    else:
        model(x)
        assert layer.seen.result() == 2.0


def test_values_of_bfloat16_in_loops():
    layer = layers.Dense(2, kernel_initializer="ones", dtype="mixed_bfloat16")
    x, seen = np.full((8, 3), 2.0, "float32"), keras.metrics.Mean()
    with GradientTape() as tape:
        y = layer(x)
        seen.update_state(y)
        assert float(y[0, 0]) == 6.0
        loss = ops.mean(ops.square(ops.cast(y, "float32")))  # behind the value that was asked for
    assert seen.result() == 6.0
    assert float(loss) == 36.0
    np.testing.assert_allclose(tape.gradient(loss, layer.bias), [6.0, 6.0])
    with GradientTape() as tape:
        y = layer(x)
        most = ops.max(y)
    assert most.numpy().shape == ()
    np.testing.assert_allclose(tape.gradient(y, layer.bias), [8.0, 8.0])
    seen.reset_state()

    @keras.function
    def double(x):
        y = layer(x)
        seen.update_state(y)
        return y * 2

    found = np.asarray(double(x))
    assert found.dtype == np.float32
    assert (found == 12).all()
    assert seen.result() == 6.0
