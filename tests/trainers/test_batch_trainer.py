"""Single batches again and again: what was prepared is not prepared again, and checks stay; plans of their steps."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.trainers import batch_trainer
from pydtconv.trainers.step_functions import StepCache

X = np.random.default_rng(0).normal(size=(6, 5)).astype("float32")
Y = np.arange(6) % 3


def built():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((5,)), layers.Dense(4, activation="relu"), layers.Dense(3, "softmax")])
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


@pytest.fixture
def looked_for(monkeypatch):
    """How often a step was looked for, and inputs were checked."""
    counts = {"steps": 0, "inputs": 0}
    step, check = StepCache.step, batch_trainer.check_inputs

    def count_step(self, *arguments):
        counts["steps"] += 1
        return step(self, *arguments)

    def count_check(*arguments):
        counts["inputs"] += 1
        return check(*arguments)

    monkeypatch.setattr(StepCache, "step", count_step)
    monkeypatch.setattr(batch_trainer, "check_inputs", count_check)
    return counts


def test_the_second_batch_is_prepared_by_the_first(looked_for):
    model, other = built(), built()
    first = model.train_on_batch(X, Y)
    assert looked_for == {"steps": 2, "inputs": 1}
    rest = [model.train_on_batch(X, Y) for _ in range(3)]
    assert looked_for == {"steps": 5, "inputs": 1}
    want = other.fit(X, Y, batch_size=6, epochs=4, shuffle=False, verbose=0).history
    assert [first, *rest] == [list(each) for each in zip(want["loss"], want["accuracy"], strict=True)]
    assert model.test_on_batch(X, Y) == other.evaluate(X, Y, verbose=0)
    np.testing.assert_array_equal(model.predict_on_batch(X), other.predict(X, verbose=0))


def test_what_changes_is_prepared_anew(looked_for):
    """Shapes, losses, what is trained, and arrays of variables that others have moved."""
    model = built()
    for x, y in ((X, Y), (X[:4], Y[:4]), (X, Y)):
        model.train_on_batch(x, y)
    assert looked_for["inputs"] == 3
    frozen = model.layers[0].get_weights()
    model.layers[0].trainable = False
    model.train_on_batch(X, Y)
    model.train_on_batch(X, Y)
    for before, after in zip(frozen, model.layers[0].get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)
    model.compile("sgd", "categorical_crossentropy", metrics=[])
    loss = model.train_on_batch(X, np.eye(3)[Y])
    assert np.isscalar(loss)
    part = keras.Sequential([model.layers[0], layers.Dense(2)])  # takes a layer into a flat array of its own
    part.layers[0].trainable = True
    part.compile("sgd", "mse")
    part.train_on_batch(X, np.ones((6, 2)))
    model.train_on_batch(X, np.eye(3)[Y])
    np.testing.assert_array_equal(model.layers[0].get_weights()[0], part.layers[0].get_weights()[0])


def test_bad_batches_are_still_refused():
    model = built()
    for _ in range(2):
        model.train_on_batch(X, Y)
    weights = model.get_weights()
    with pytest.raises(ValueError, match="expected class numbers from 0 to 2, got 0 to 7"):
        model.train_on_batch(X, np.array([0, 1, 2, 0, 1, 7]))
    with pytest.raises(ValueError, match=r"expected extent 5 on axis -1, got shape \(6, 4\)"):
        model.train_on_batch(X[:, :4], Y)
    with pytest.raises(ValueError, match="expected data of one length, got samples of x: 6, y: 5"):
        model.train_on_batch(X, Y[:5])
    with pytest.raises(ValueError, match=r"x: .* expected numbers, got strings"):
        model.train_on_batch(np.array(["a"] * 6), Y)
    for before, after in zip(weights, model.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_plan():
    model = built()
    plan = model.plan(16)
    assert plan.peak_bytes > 0
    with pytest.raises(keras.graph.MemoryLimitError):
        model.plan(16, memory_limit=10)
    fresh = keras.Sequential([keras.Input((4,)), layers.Dense(3)])
    assert fresh.plan(8).peak_bytes > 0
    with pytest.raises(ValueError, match="batch_size"):
        model.plan(0)
