"""What a model tells of metrics, results and added losses, before and after runs: names, order and values of Keras."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv
from tests.real_keras import import_keras

pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad:UserWarning"),
]
RNG = np.random.default_rng(3)
X = RNG.normal(size=(11, 4)).astype("float32")
KIND, SIZE = RNG.normal(size=(11, 3)).astype("float32"), RNG.normal(size=(11, 1)).astype("float32")


def one_output(of):
    def farNess(y_true, y_pred):
        return of.ops.abs(of.ops.subtract(y_true, y_pred))

    inputs = of.Input((4,))
    x = of.layers.Dense(5, kernel_regularizer=of.regularizers.L2(0.1))(inputs)
    model = of.Model(inputs, of.layers.Dense(3)(x))
    metrics = ["mae", "mse", "mse", of.metrics.MeanSquaredError(name="named"), farNess, lambda y, p: farNess(y, p)]
    model.compile("sgd", "mse", metrics=metrics, weighted_metrics=["mse", "mape"])
    return model, KIND


def two_outputs(of):
    inputs = of.Input((4,))
    x = of.layers.Dense(5, kernel_regularizer="l2", activity_regularizer="l2")(inputs)
    outputs = {"kind": of.layers.Dense(3, name="kind")(x), "size": of.layers.Dense(1, name="size")(x)}
    model = of.Model(inputs, outputs)
    metrics = {"kind": ["mae", "mse"], "size": [of.metrics.MeanAbsoluteError(name="mae")]}
    model.compile("sgd", {"kind": "mse", "size": "mae"}, metrics=metrics, weighted_metrics={"size": ["mae"]})
    return model, {"kind": KIND, "size": SIZE}


def subclass(of):
    class Model(of.Model):
        def __init__(self):
            super().__init__()
            self.inner = of.layers.Dense(3)
            self.tracked = of.metrics.Mean(name="tracked")

        def call(self, x):
            y = self.inner(x)
            self.add_loss(0.1 * of.ops.mean(of.ops.square(y)))
            return y

    model = Model()
    model(X)
    model.compile("sgd", "mse", metrics=["mae"])
    return model, KIND


def numbers(values):
    return [float(value) for value in values]


def told(of, make):
    """Names and numbers that a model tells in turn."""
    model, y = make(of)
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(size=weight.shape) for weight in model.get_weights()])
    names, values = [], []

    def note(results=None):
        if results is not None:
            names.append([*results])
            values.append(numbers(np.ravel(value)[-1] for value in results.values()))
        names.append(model.metrics_names)
        names.append([metric.name for metric in model.metrics])
        values.append(numbers(model.losses))

    names.append([metric.name for metric in model.metrics])
    note(model.fit(X, y, batch_size=4, epochs=2, shuffle=False, verbose=0, validation_data=(X[:5], first(y))).history)
    note(model.evaluate(X, y, verbose=0, return_dict=True))
    values.append(numbers(model.evaluate(X, y, batch_size=3, verbose=0)) if make is not one_output else [])
    note(model.get_metrics_result())
    note(model.train_on_batch(X[:4], first(y, 4), return_dict=True))
    model.predict(X[5:], verbose=0)
    note(model.test_on_batch(X[:4], first(y, 4), return_dict=True))
    model.predict(X[5:], verbose=0)
    note()
    model.reset_metrics()
    return names, values


def first(y, count=5):
    return {name: array[:count] for name, array in y.items()} if isinstance(y, dict) else y[:count]


@pytest.mark.parametrize("make", [one_output, two_outputs, subclass])
def test_names_order_and_numbers(make) -> None:
    names, values = told(import_keras(), make)
    our_names, our_values = told(pydtconv, make)
    assert our_names == names
    for found, want in zip(our_values, values, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-4)


def test_results_of_the_metrics_of_compile_are_one_dict() -> None:
    model, y = two_outputs(pydtconv)
    logs = model.evaluate(X, y, verbose=0, return_dict=True)
    tracker, together, *losses = model.metrics
    assert float(tracker.result()) == logs["loss"]
    assert {f"{name}_loss" for name in y} == {metric.name for metric in losses}
    assert set(together.result()) == {"kind_mae", "kind_mse", "size_mae", "size_weighted_mae"}
    assert all(logs[name] == value for name, value in together.result().items())
    model.reset_metrics()
    assert set(together.result().values()) == {0.0}


def test_a_layer_tells_what_it_has_added_in_a_step() -> None:
    model, y = two_outputs(pydtconv)
    model.fit(X, y, batch_size=4, verbose=0)
    layer = model.layers[1]
    assert [float(loss) for loss in layer.losses] == [float(loss) for loss in model.losses]


def test_a_model_that_is_not_compiled_has_no_results() -> None:
    inputs = pydtconv.Input((4,))
    model = pydtconv.Model(inputs, pydtconv.layers.Dense(3)(inputs))
    assert (model.metrics, model.metrics_names, model.get_metrics_result()) == ([], [], {})
