"""Plain attributes of layers and models that change between steps, which the next step sees, as in Keras on PyTorch."""

import tracemalloc

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, ops, optimizers
from pydtconv.callbacks import Callback
from pydtconv.layers.base import attribute_values
from tests.real_keras import import_keras

X = np.random.default_rng(3).normal(size=(8, 3)).astype("float32")
Y = np.random.default_rng(4).normal(size=(8, 2)).astype("float32")


def networks(keras):
    class Scaled(keras.layers.Layer):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.alpha = 1.0
            self.squared = False

        def call(self, x):
            x = keras.ops.square(x) if self.squared else x
            return self.alpha * x

    class Weighted(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(2, kernel_initializer="ones")
            self.beta = 1.0

        def call(self, x):
            return self.dense(x)

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return self.beta * keras.ops.mean(keras.ops.square(y - y_pred))

    return Scaled, Weighted


def annealing(keras):
    class Annealing(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.model.beta = 0.5**epoch

    return Annealing()


def run(keras):
    scaled, weighted = networks(keras)
    layer = scaled()
    inputs = keras.Input((3,))
    model = keras.Model(inputs, layer(keras.layers.Dense(2, kernel_initializer="ones")(inputs)))
    found = [model.predict(X, verbose=0)]
    layer.alpha = 3.0
    found.append(model.predict(X, verbose=0))
    layer.squared = True
    found.append(model.predict(X, verbose=0))
    layer.alpha, layer.squared = 1.0, False
    found.append(model.predict(X, verbose=0))
    model = weighted()
    model.compile(keras.optimizers.SGD(0.1))
    history = model.fit(X, Y, epochs=4, batch_size=8, shuffle=False, verbose=0, callbacks=[annealing(keras)])
    model.beta = 10.0
    return [*found, history.history["loss"], model.evaluate(X, Y, verbose=0), model.predict(X, verbose=0)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_changes_are_seen_as_in_keras():
    for ours, theirs in zip(run(pydtconv), run(import_keras()), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_values_that_come_again_are_not_traced_again():
    traces = []

    class Own(layers.Layer):
        scale = 1.0
        unread = 0

        def call(self, x):
            traces.append(self.scale)
            return x * self.scale

    model = pydtconv.Sequential([pydtconv.Input((3,)), Own()])
    model.predict(X, verbose=0)
    traces.clear()
    for value in (2.0, 1.0, 2.0, 1.0, 2.0):
        model.layers[0].scale = value
        model.layers[0].unread = value  # no method reads it
        np.testing.assert_array_equal(model.predict(X, verbose=0), X * np.float32(value))
    assert sorted(set(traces)) == [1.0, 2.0]
    assert len(traces) <= 2


def test_lists_dicts_and_arrays_that_change_are_seen():
    class Own(layers.Layer):
        def __init__(self):
            super().__init__()
            self.factors, self.more, self.array = [1.0, 1.0], {"more": 1.0}, np.array([1.0, 1.0, 1.0])

        def call(self, x):
            return x * self.factors[0] * self.factors[1] * self.more["more"] * self.array

    model = pydtconv.Sequential([pydtconv.Input((3,)), Own()])
    layer = model.layers[0]

    def factor():
        (found,) = set((model.predict(np.ones((1, 3)), verbose=0)).ravel().tolist())
        return found

    assert factor() == 1
    layer.factors = [2.0, 1.0]
    assert factor() == 2
    layer.factors[1] = 3.0
    assert factor() == 6
    layer.more["more"] = 5.0
    assert factor() == 30
    layer.array = np.full(3, 7.0)
    assert factor() == 210
    layer.factors, layer.more, layer.array = [1.0, 1.0], {"more": 1.0}, np.ones(3)
    assert factor() == 1
    assert len(model._pydt_steps.plans) == 5


def test_values_of_before_take_no_memory():
    _, weighted = networks(pydtconv)
    model = weighted()
    numbers = {attribute_values.of_model(model)}
    tracemalloc.start()
    try:
        for i in range(1000):
            model.beta = i / 7
            last = attribute_values.of_model(model)
        assert tracemalloc.get_traced_memory()[0] < 64 << 10
    finally:
        tracemalloc.stop()
    model.beta = 1.0
    assert numbers == {attribute_values.of_model(model)} != {last}


def test_what_a_call_sets_itself_is_no_change():
    traces = []

    class Counting(layers.Layer):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def call(self, x):
            self.calls += 1
            traces.append(self.calls)
            return x * 2.0

    model = pydtconv.Sequential([pydtconv.Input((3,)), Counting()])
    model.compile("sgd", "mse")
    for _ in range(3):
        model.predict(X, verbose=0)
    assert len(traces) <= 4  # two to infer shapes, one for the step


class Stepping(pydtconv.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(2)
        self.weight = 1.0
        self.traces = 0

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        self.traces += 1
        with pydtconv.GradientTape() as tape:
            loss = self.weight * ops.mean(ops.square(self(x, training=True) - y))
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables, strict=True)
        )
        return {"loss": loss}


def test_steps_of_ones_own_see_changes():
    model = Stepping()
    model.compile(optimizers.SGD(0.0))
    one = model.fit(X, Y, verbose=0, epochs=3).history["loss"]
    before = model.traces
    model.weight = 4.0
    four = model.fit(X, Y, verbose=0, epochs=3).history["loss"]
    np.testing.assert_allclose(four, 4 * np.array(one), rtol=1e-6)
    assert model.traces == before + 1


def test_a_layers_own_rate_changes():
    model = pydtconv.Sequential([pydtconv.Input((4,)), layers.Rescaling(2.0)])
    ones = np.ones((2, 4), "float32")
    assert model.predict(ones, verbose=0).max() == 2
    model.layers[0].scale = 3.0
    assert model.predict(ones, verbose=0).max() == 3


def test_callbacks_that_stop_do_not_trace_anew():
    class Stop(Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = True

    model = Stepping()
    model(X)
    model.compile(optimizers.SGD(0.0))
    model.fit(X, Y, verbose=0)
    before = model.traces
    model.fit(X, Y, verbose=0, callbacks=[Stop()])
    model.fit(X, Y, verbose=0)
    assert model.traces == before
