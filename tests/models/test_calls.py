"""Calls of models on arrays: from the plan of `predict`, where they run no code of users."""

import functools

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, regularizers


def _small():
    inputs = pydtconv.Input((6, 6, 2))
    x = layers.Conv2D(4, 3, activation="relu")(inputs)
    return pydtconv.Model(inputs, layers.Dense(3, activation="softmax", name="last")(layers.Flatten()(x)))


def test_a_call_on_arrays_runs_the_step_of_predict():
    model, x = _small(), np.random.default_rng(0).normal(size=(4, 6, 6, 2))
    first = np.array(model(x))
    plans = model._pydt_steps.plans
    assert len(plans) == 1
    np.testing.assert_array_equal(first, model.predict_on_batch(x))
    np.testing.assert_array_equal(first, model(x, training=False))
    assert model._pydt_steps.plans == plans
    again = model(x)
    model.set_weights([2 * weight for weight in model.get_weights()])
    np.testing.assert_array_equal(again, first)  # an array of its own
    assert np.abs(np.array(model(x)) - first).max() > 1e-3


def test_a_call_on_arrays_sees_what_has_changed_in_layers():
    model, x = _small(), np.random.default_rng(0).normal(size=(4, 6, 6, 2)).astype("float32")
    expected = np.array(model(x))
    last = model.get_layer("last")
    for factor in (1.0, 2.0, 1.0):  # functions that may get one address after the other
        last.activation = lambda y, factor=factor: factor * y
        np.testing.assert_allclose(model(x), factor * _logits(model, x), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(model.predict(x, verbose=0), factor * _logits(model, x), rtol=1e-5, atol=1e-6)
    last.activation = pydtconv.activations.softmax
    np.testing.assert_array_equal(model(x), expected)


def _logits(model, x):
    w, b = model.get_layer("last").get_weights()
    inner = pydtconv.Model(model.inputs, model.get_layer("last").input)
    return np.array(inner(x)) @ w + b


class Counting(layers.Layer):
    calls = 0

    def call(self, x):
        Counting.calls += 1
        return x + 1.0


def test_code_of_users_runs_in_each_call():
    x = np.zeros((2, 3), "float32")
    inputs = pydtconv.Input((3,))
    seen = []
    called = [
        pydtconv.Sequential([inputs, Counting()]),
        pydtconv.Sequential([inputs, layers.Lambda(lambda x: (seen.append(1), x + 1.0)[1])]),
        pydtconv.Sequential([inputs, pydtconv.Sequential([pydtconv.Input((3,)), Counting()])]),
    ]
    for model in called:
        before = Counting.calls, len(seen)
        for _ in range(3):
            np.testing.assert_array_equal(model(x), x + 1)
        assert Counting.calls - before[0] + len(seen) - before[1] == 3


def test_large_calls_keep_no_arena_and_calls_within_a_step_are_calls():
    model = _small()
    model(np.zeros((2, 6, 6, 2), "float32"))
    kept = model._pydt_steps.memory.arena.nbytes
    model(np.zeros((60000, 6, 6, 2), "float32"))
    assert model._pydt_steps.memory.arena.nbytes == kept
    x = np.ones((2, 6, 6, 2), "float32")
    expected = np.array(model(x))
    with model._pydt_steps.workspace.running():
        np.testing.assert_allclose(model(x), expected, rtol=1e-6)


class Factor:
    """Code of a user's that is called, in all ways."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x, *, training=None):
        self.calls += 1
        return x * float(self.calls)

    def method(self, x):
        return self(x)


class Helped(layers.Rescaling):
    """A user's class whose `call` is that of the layer, and runs what is its own."""

    factor = Factor()

    @property
    def scale(self):
        return float(self.factor.method(1.0))

    @scale.setter
    def scale(self, value):
        pass


@pytest.mark.parametrize(
    "layer_of",
    [
        lambda factor: layers.Activation(factor),
        lambda factor: layers.Activation(factor.method),
        lambda factor: layers.Activation(functools.partial(factor, training=None)),
        lambda factor: Helped(1.0),
    ],
    ids=["object", "method", "partial", "property"],
)
def test_code_of_users_that_is_no_function_runs_in_each_call(layer_of):
    factor, x = Factor(), np.ones((2, 3), "float32")
    model = pydtconv.Sequential([pydtconv.Input((3,)), layer_of(factor)])
    found = [float(model(x)[0, 0]) for _ in range(3)]
    assert np.ptp(np.diff(found)) == 0
    assert np.diff(found)[0] >= 1


def test_what_a_layer_calls_may_become_any_object():
    layer, x = layers.Dense(2, kernel_initializer="ones"), np.ones((2, 3), "float32")
    model = pydtconv.Sequential([pydtconv.Input((3,)), layer])
    np.testing.assert_array_equal(model(x), 3)
    for _ in range(2):
        factor = layer.activation = Factor()
        for call in (model, lambda x: model.predict(x, verbose=0)):
            np.testing.assert_array_equal(call(x), 3 * factor.calls)
    layer.call = lambda x, training=None: 7 * x
    for call in (model, lambda x: model.predict(x, verbose=0)):
        np.testing.assert_array_equal(call(x), 7)


def test_losses_are_those_of_the_last_call():
    layer, x = layers.Dense(2, activity_regularizer=regularizers.L2(0.5)), np.ones((1, 3), "float32")
    model = pydtconv.Sequential([pydtconv.Input((3,)), layer])
    for weight in (0.5, 1.0):
        layer.activity_regularizer.l2 = weight
        y = model(x)
        np.testing.assert_allclose(model.losses, [weight * _squares(y)], rtol=1e-6)
    for call in (model, lambda x: model.predict(x, verbose=0)):
        layer.activity_regularizer = regularizers.L2(2.0)
        y = call(x)
        np.testing.assert_allclose(model.losses, [2 * _squares(y)], rtol=1e-6)
        layer.activity_regularizer = None
        call(x)
        assert model.losses == []


def _squares(y):
    return float(np.sum(np.square(y)))


def test_calls_draw_the_numbers_of_calls():
    x, found = np.ones((2, 200), "float32"), []
    for as_step in (True, False):
        inputs = pydtconv.Input((200,))
        model = pydtconv.Model(inputs, layers.Dropout(0.5, seed=5)(inputs, training=True))
        model.run_eagerly = not as_step
        found.append([model(x) for _ in range(3)])
    np.testing.assert_array_equal(*found)
    assert np.ptp(found[0], axis=0).any()


def test_calls_on_arrays_need_no_kernel_of_a_device():
    inputs, x = pydtconv.Input((5,)), np.ones((2, 5), "float32")
    model = pydtconv.Model(inputs, pydtconv.ops.cumsum(inputs, axis=1))
    with pydtconv.device("host"):
        np.testing.assert_array_equal(model(x), np.cumsum(x, 1))
