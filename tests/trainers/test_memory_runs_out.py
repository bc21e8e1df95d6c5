"""A batch for which there is no memory is an error that leaves the model as it was."""

import weakref

import numpy as np
import pytest

import pydtconv as keras
from pydtconv.devices import get

SHAPE = (8, 8, 3)


def model():
    x = inputs = keras.Input(SHAPE)
    x = keras.layers.Conv2D(8, 3, activation="relu")(x)
    result = keras.Model(inputs, keras.layers.Dense(3)(keras.layers.Flatten()(x)))
    result.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    return result


def batch(n):
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, *SHAPE), np.float32), rng.standard_normal((n, 3), np.float32)


def test_a_model_goes_on_after_a_batch_for_which_there_is_no_memory(monkeypatch):
    device = get("cpu")
    trained, undisturbed = model(), model()
    undisturbed.set_weights(trained.get_weights())
    for each in (trained, undisturbed):
        each.train_on_batch(*batch(8))
        each.predict_on_batch(batch(16)[0])

    def none(nbytes):
        raise MemoryError(f"Unable to allocate {nbytes} bytes")

    monkeypatch.setattr(type(device), "arena", lambda self, nbytes: none(nbytes))
    with pytest.raises(MemoryError, match="Unable to allocate"):
        trained.train_on_batch(*batch(256))
    monkeypatch.undo()
    for each in (trained, undisturbed):
        each.train_on_batch(*batch(4))  # a smaller arena than the first step wants
        each.train_on_batch(*batch(8))
        each.train_on_batch(*batch(256))
    for ours, theirs in zip(trained.get_weights(), undisturbed.get_weights(), strict=True):
        assert np.array_equal(ours, theirs)


def test_an_arena_that_grows_gives_the_old_one_back_first(monkeypatch):
    trained = model()
    trained.train_on_batch(*batch(8))
    alive = []
    memory = trained._steps.memory
    make = memory.device.arena

    def watched(nbytes):
        alive.append(arena() is not None)
        return make(nbytes)

    arena = weakref.ref(memory.arena.base)
    monkeypatch.setattr(type(memory.device), "arena", lambda self, nbytes: watched(nbytes))
    trained.train_on_batch(*batch(64))
    assert alive == [False]
