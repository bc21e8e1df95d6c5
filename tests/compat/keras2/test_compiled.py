"""Training steps of Keras 2, which call `compiled_loss`, train as `fit` does."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
RANDOM = np.random.default_rng(0)
X = RANDOM.random((24, 3)).astype("float32")
Y = {"a": RANDOM.random((24, 2)).astype("float32"), "b": RANDOM.integers(0, 4, (24, 1))}


class Old(pydtconv.Model):
    def train_step(self, data):
        from pydtconv import GradientTape

        x, y = data
        with GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compiled_loss(y, y_pred, regularization_losses=self.losses)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        self.compiled_metrics.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data):
        x, y = data
        y_pred = self(x, training=False)
        self.compiled_loss(y, y_pred, regularization_losses=self.losses)
        self.compiled_metrics.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


def made(cls, several, eagerly):
    pydtconv.utils.set_random_seed(3)
    inputs = pydtconv.Input((3,))
    a = layers.Dense(2, name="a", kernel_regularizer="l2")(inputs)
    if not several:
        model = cls(inputs, a)
        model.compile("sgd", "mse", metrics=["mae"], run_eagerly=eagerly)
        return model
    b = layers.Dense(4, activation="softmax", name="b")(inputs)
    model = cls(inputs, {"a": a, "b": b})
    loss = {"a": "mse", "b": "sparse_categorical_crossentropy"}
    model.compile("sgd", loss, loss_weights={"a": 0.5, "b": 2.0}, metrics={"a": ["mae"]}, run_eagerly=eagerly)
    return model


@pytest.mark.parametrize("eagerly", [False, True])
@pytest.mark.parametrize("several", [False, True])
def test_a_step_with_compiled_loss_trains_as_fit(tf, several, eagerly):
    y = Y if several else Y["a"]
    found, expected = made(Old, several, eagerly), made(pydtconv.Model, several, eagerly)
    first = found.fit(X, y, batch_size=7, epochs=2, shuffle=False, verbose=0).history
    second = expected.fit(X, y, batch_size=7, epochs=2, shuffle=False, verbose=0).history
    for one, other in zip(found.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
    assert set(first) == set(second)
    for name in second:
        np.testing.assert_allclose(first[name], second[name], rtol=1e-5)
    one, other = (each.evaluate(X, y, verbose=0, return_dict=True) for each in (found, expected))
    for name in other:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-5)


def test_without_a_loss_it_says_so(tf):
    inputs = pydtconv.Input((3,))
    model = pydtconv.Model(inputs, layers.Dense(1)(inputs))
    with pytest.raises(ValueError, match="expected a compiled model"):
        model.compiled_loss(X, X)
    model.compile("sgd")
    with pytest.raises(ValueError, match="no loss to compute"):
        model.compiled_loss(X[:, :1], model(X))
