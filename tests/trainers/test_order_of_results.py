"""evaluate, train_on_batch and test_on_batch give their lists in Keras's order."""

import numpy as np
import pytest

import pydtconv
from tests.real_keras import import_keras

X, Y = np.ones((4, 3), "float32"), np.array([0, 1, 2, 1])


def one_output(of):
    inputs = of.Input((3,))
    model = of.Model(inputs, of.layers.Dense(2, kernel_initializer="ones")(inputs))
    model.compile("sgd", "mse", metrics=["mape", "mae"], weighted_metrics=["msle"])
    return model, np.zeros((4, 2)), np.arange(4.0)


def two_outputs(of):
    inputs = of.Input((3,))
    kind = of.layers.Dense(3, activation="softmax", kernel_initializer="zeros", name="kind")(inputs)
    size = of.layers.Dense(2, kernel_initializer="ones", name="size")(inputs)
    model = of.Model(inputs, [kind, size])
    model.compile("sgd", ["sparse_categorical_crossentropy", "mae"], metrics=[["accuracy"], ["mse", "mape"]])
    return model, [Y, np.ones((4, 2))], None


def own_step(of):
    class Own(of.Model):
        def test_step(self, data):
            found = super().test_step(data)
            return {"zebra": found["loss"], "ant": found["loss"], **found}

    inputs = of.Input((3,))
    model = Own(inputs, of.layers.Dense(2, kernel_initializer="ones")(inputs))
    model.compile("sgd", "mse", metrics=["mape", "mae"])
    return model, np.zeros((4, 2)), None


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("made", [one_output, two_outputs, own_step])
def test_results_come_in_keras_order(made):
    results = []
    for of in import_keras(), pydtconv:
        model, y, weights = made(of)
        found = [model.evaluate(X, y, sample_weight=weights, verbose=0), model.test_on_batch(X, y, weights)]
        results.append(np.array([[float(value) for value in values] for values in found]))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)
