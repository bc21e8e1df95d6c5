"""Calls of models on arrays: from the plan of `predict`, where they run no code of users."""

import numpy as np

import pydtconv
from pydtconv import layers


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
