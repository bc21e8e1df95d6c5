"""Trainings that are interrupted and resumed, beside ones that are not."""

import numpy as np
import pytest

import pydtconv
from pydtconv import callbacks, layers, utils

RNG = np.random.default_rng(8)
X = RNG.normal(size=(75, 8, 8, 3)).astype("float32")
Y = RNG.integers(0, 4, 75)
EPOCHS, BATCH = 3, 10  # seven whole batches and half of one


class Broken(Exception):
    pass


class Break(callbacks.Callback):
    """Raises before a step, as a crash would."""

    def __init__(self, epoch, batch):
        self.at, self.epoch = (epoch, batch), 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        if (self.epoch, batch) == self.at:
            raise Broken


class Results(callbacks.Callback):
    """The results of every step, the last time that it was taken."""

    def __init__(self):
        self.of, self.epoch = {}, 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        self.of[self.epoch, batch] = dict(logs)


def network(optimizer="adam", **compiled):
    model = pydtconv.Sequential(
        [
            layers.Input((8, 8, 3)),
            layers.RandomFlip("horizontal"),
            layers.RandomCrop(7, 7),
            layers.GaussianNoise(0.1),
            layers.Conv2D(6, 3, kernel_regularizer="l2"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Dropout(0.3),
            layers.Flatten(),
            layers.Dense(4, activation="softmax"),
        ]
    )
    model.compile(optimizer, "sparse_categorical_crossentropy", **({"metrics": ["accuracy"]} | compiled))
    return model


def state_of(model, history):
    """Everything that must be equal to the last bit."""
    values = [variable.value for variable in [*model.variables, *model.optimizer.variables]]
    return [value.tobytes() for value in values], repr(history.history), history.epoch


def fit(model, folder, *others, save_freq=3, data=(X, Y), **arguments):
    x, y = data
    batch = {} if y is None else {"batch_size": BATCH}
    backup = callbacks.BackupAndRestore(folder, save_freq=save_freq)
    options = {"epochs": EPOCHS, "verbose": 0, "callbacks": [backup, *others], **batch, **arguments}
    return model.fit(x, y, **options)


def check_resumed(folder, make=network, at=(1, 4), others=lambda: [], data=lambda: (X, Y), **arguments):
    """Trains without a break, and with one at (epoch, batch), the second part from other seeds; compares all."""
    utils.set_random_seed(1)
    whole, steps = make(), Results()
    expected = state_of(whole, fit(whole, folder / "whole", steps, *others(), data=data(), **arguments))
    assert not (folder / "whole").exists()

    utils.set_random_seed(1)
    again = Results()
    with pytest.raises(Broken):
        fit(make(), folder / "broken", again, *others(), Break(*at), data=data(), **arguments)
    assert list((folder / "broken").iterdir())
    utils.set_random_seed(2)
    resumed = make()
    found = state_of(resumed, fit(resumed, folder / "broken", again, *others(), data=data(), **arguments))
    assert found[1:] == expected[1:]
    assert found[0] == expected[0]
    assert repr(sorted(again.of.items())) == repr(sorted(steps.of.items()))
    return resumed
