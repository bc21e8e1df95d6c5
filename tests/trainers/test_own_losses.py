"""Losses that layers add for each sample, and a `compute_loss` that reads targets of its own."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers, ops

X = np.arange(12, dtype="float32").reshape(4, 3) / 12


class PerSample(layers.Layer):
    """Adds a loss for each sample."""

    def call(self, inputs):
        self.add_loss(0.1 * ops.sum(ops.square(inputs), axis=-1))
        return inputs


def test_losses_that_a_layer_adds_are_summed_up():
    model = keras.Sequential([keras.Input((3,)), PerSample(), layers.Dense(1, kernel_initializer="zeros")])
    model.compile("sgd", "mse")
    expected = 1 + 0.1 * np.square(X).sum()
    np.testing.assert_allclose(model.test_on_batch(X, np.ones((4, 1))), expected, rtol=1e-6)
    model(X)
    np.testing.assert_allclose(model.losses[0], 0.1 * np.square(X).sum(-1), rtol=1e-6)


class TwoHeads(keras.Model):
    """Its `compute_loss` compares the first head with all targets; the second one has none."""

    def __init__(self):
        super().__init__()
        self.first, self.second = layers.Dense(2, kernel_initializer="ones"), layers.Dense(1, kernel_initializer="ones")

    def call(self, inputs):
        return self.first(inputs), self.second(inputs)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        parts = y.values() if isinstance(y, dict) else y if isinstance(y, tuple) else [y]
        return sum(ops.mean(ops.square(part - y_pred[0])) for part in parts) + ops.mean(y_pred[1])


@pytest.mark.parametrize("kind", ["one", "three", "names"])
def test_a_loss_of_the_subclass_reads_targets_that_do_not_go_with_the_outputs(kind):
    y = np.arange(8).reshape(4, 2) % 3
    targets = {"one": y, "three": (y, y + 1.0, y - 1.0), "names": {"a": y, "b": y + 1.0, "c": y - 1.0}}[kind]
    model = TwoHeads()
    model.compile("sgd")
    sums = X.sum(-1, keepdims=True)
    expected = sum(np.square(y + more - sums).mean() for more in ([0] if kind == "one" else [0, 1, -1])) + sums.mean()
    np.testing.assert_allclose(model.evaluate(X, targets, verbose=0), expected, rtol=1e-5)
    history = model.fit(X, targets, epochs=2, verbose=0).history["loss"]
    assert history[1] < history[0] == pytest.approx(expected, rel=1e-5)


def test_losses_of_compile_still_have_targets_for_each_output():
    model = TwoHeads()
    model.compile("sgd", ["mse", "mse"])
    with pytest.raises(ValueError, match=r"y: expected 2 arrays, for outputs .*, got 1"):
        model.fit(X, X[:, :2], verbose=0)
