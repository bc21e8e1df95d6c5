"""`compile`, the total loss and the metrics that follow: names, order and values; own losses, losses of layers."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, models, ops, optimizers
from tests.real_keras import import_keras
from tests.trainers.small_models import XS, YS, line

pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad:UserWarning"),
]
RNG = np.random.default_rng(3)
X = RNG.normal(size=(11, 4)).astype("float32")
SMALL = np.arange(12, dtype="float32").reshape(4, 3) / 12
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


class PerSample(layers.Layer):
    """Adds a loss for each sample."""

    def call(self, inputs):
        self.add_loss(0.1 * ops.sum(ops.square(inputs), axis=-1))
        return inputs


def test_losses_that_a_layer_adds_are_summed_up():
    model = pydtconv.Sequential([pydtconv.Input((3,)), PerSample(), layers.Dense(1, kernel_initializer="zeros")])
    model.compile("sgd", "mse")
    expected = 1 + 0.1 * np.square(SMALL).sum()
    np.testing.assert_allclose(model.test_on_batch(SMALL, np.ones((4, 1))), expected, rtol=1e-6)
    model(SMALL)
    np.testing.assert_allclose(model.losses[0], 0.1 * np.square(SMALL).sum(-1), rtol=1e-6)


class TwoHeads(pydtconv.Model):
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
    sums = SMALL.sum(-1, keepdims=True)
    expected = sum(np.square(y + more - sums).mean() for more in ([0] if kind == "one" else [0, 1, -1])) + sums.mean()
    np.testing.assert_allclose(model.evaluate(SMALL, targets, verbose=0), expected, rtol=1e-5)
    history = model.fit(SMALL, targets, epochs=2, verbose=0).history["loss"]
    assert history[1] < history[0] == pytest.approx(expected, rel=1e-5)


def test_losses_of_compile_still_have_targets_for_each_output():
    model = TwoHeads()
    model.compile("sgd", ["mse", "mse"])
    with pytest.raises(ValueError, match=r"y: expected 2 arrays, for outputs .*, got 1"):
        model.fit(SMALL, SMALL[:, :2], verbose=0)


def test_own_loss_function_and_own_total():
    def distance(y_true, y_pred):
        return ops.mean(ops.abs(y_true - y_pred), axis=-1)

    one, two = line(loss=distance), line(loss="mae")
    assert one.evaluate(XS[:, None], YS[:, None], verbose=0) == two.evaluate(XS[:, None], YS[:, None], verbose=0)

    class Doubled(models.Sequential):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return super().compute_loss(x, y, y_pred, sample_weight, training) * 2.0

    model = Doubled([layers.Input((1,)), layers.Dense(1, kernel_initializer="zeros")])
    model.compile("sgd", "mae")
    expected = 2 * two.evaluate(XS[:, None], YS[:, None], verbose=0)
    assert model.evaluate(XS[:, None], YS[:, None], verbose=0) == pytest.approx(expected)


@pytest.mark.parametrize("stepped", [False, True])
def test_compute_loss_without_training(stepped):
    class Halved(models.Sequential):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
            return 0.5 * ops.mean(ops.abs(y - y_pred))

    class Stepped(Halved):
        def train_step(self, data):
            return super().train_step(data)

        def test_step(self, data):
            return super().test_step(data)

    model = (Stepped if stepped else Halved)([layers.Input((1,)), layers.Dense(1, kernel_initializer="zeros")])
    model.compile(optimizers.SGD(0.0))
    half = 0.5 * np.abs(YS).mean()
    found = model.fit(XS[:, None], YS[:, None], validation_data=(XS[:, None], YS[:, None]), verbose=0).history
    assert [found["loss"][0], found["val_loss"][0]] == pytest.approx([half, half], rel=1e-5)


def test_what_compute_metrics_adds_is_reported(tmp_path):
    class Means(models.Sequential):
        def compute_metrics(self, x, y, y_pred, sample_weight=None):
            return {**super().compute_metrics(x, y, y_pred, sample_weight), "mean": ops.mean(y_pred)}

    model = Means([layers.Input((1,)), layers.Dense(1, kernel_initializer="zeros", bias_initializer="ones")])
    model.compile(optimizers.SGD(0.0), "mse", metrics=["mae"])
    data = XS[:, None], YS[:, None]
    kept = pydtconv.callbacks.ModelCheckpoint(tmp_path / "net.keras", "val_mean", mode="min", save_best_only=True)
    found = model.fit(*data, validation_data=data, callbacks=[kept], verbose=0).history
    assert {"loss", "mae", "mean", "val_loss", "val_mae", "val_mean"} == set(found)
    assert found["mean"] == found["val_mean"] == [1]
    assert model.evaluate(*data, return_dict=True, verbose=0)["mean"] == 1
    assert (tmp_path / "net.keras").exists()


def test_not_compiled():
    model = models.Sequential([layers.Input((4,)), layers.Dense(3)])
    assert model.predict(X, verbose=0).shape == (11, 3)
    for method in model.fit, model.evaluate, model.train_on_batch:
        with pytest.raises(ValueError, match="compile"):
            method(X, KIND)
