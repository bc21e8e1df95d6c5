"""Losses and metrics of `compile`, one list for each output: names, order and values of results, as Keras has them."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, losses, models
from tests.real_keras import import_keras
from tests.trainers.small_models import X, Y

ONES, KINDS = np.ones((4, 3), "float32"), np.array([0, 1, 2, 1])


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
    return model, [KINDS, np.ones((4, 2))], None


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
        found = [model.evaluate(ONES, y, sample_weight=weights, verbose=0), model.test_on_batch(ONES, y, weights)]
        results.append(np.array([[float(value) for value in values] for values in found]))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)


def test_several_outputs_by_name():
    x = layers.Input((4,), name="x")
    y = layers.Dense(6, activation="relu")(x)
    model = models.Model(x, [layers.Dense(3, name="kind")(y), layers.Dense(1, name="size")(y)])
    model.compile(
        "sgd",
        loss={"kind": losses.SparseCategoricalCrossentropy(from_logits=True), "size": "mse"},
        loss_weights={"kind": 2.0, "size": 0.5},
        metrics={"kind": ["accuracy"]},
    )
    targets = {"kind": Y, "size": X[:, :1]}
    results = model.evaluate(X, targets, verbose=0, return_dict=True)
    assert set(results) == {"loss", "kind_loss", "size_loss", "kind_accuracy"}
    assert results["loss"] == pytest.approx(2 * results["kind_loss"] + 0.5 * results["size_loss"], rel=1e-5)
    assert model.evaluate(X, [Y, X[:, :1]], verbose=0, return_dict=True) == pytest.approx(results)
    model.fit({"x": X}, targets, epochs=2, verbose=0)
    kind, size = model.predict(X, verbose=0)
    assert kind.shape == (22, 3)
    assert size.shape == (22, 1)


@pytest.mark.parametrize(
    ("nest", "names"),
    [
        (lambda a, b, c: {"p": a, "q": {"r": b, "s": [c]}}, ("p", "q/r", "q/s/c")),
        (lambda a, b, c: [a, [b, c]], ("a", "1/b", "1/c")),
        (lambda a, b, c: [[a], {"z": b}, c], ("0/a", "1/z", "c")),
        (lambda a, b, c: {"p": a, "q": [b], "r": [c]}, ("p", "q/b", "r/c")),
    ],
    ids=["dicts", "lists", "both", "one each"],
)
def test_losses_of_nested_outputs(nest, names, tmp_path):
    """Names of losses and metrics are Keras's."""
    x = np.ones((8, 4), "float32")
    inputs = layers.Input((4,))
    made = (layers.Dense(n, kernel_initializer="ones", name=name)(inputs) for n, name in ((2, "a"), (3, "b"), (1, "c")))
    model = models.Model(inputs, nest(*made))
    y = nest(np.zeros((8, 2)), np.ones((8, 3)), np.full((8, 1), 2.0))
    weights = nest(np.arange(8.0), np.arange(8.0), np.ones(8))
    model.compile("sgd", nest("mse", "mae", "mse"), nest(1.0, 2.0, 3.0), metrics=nest(["mae"], [], ["mae", "mse"]))
    expected = dict(zip((f"{name}_loss" for name in names), (56.0, 10.5, 4.0), strict=True))
    expected |= {"loss": 56 + 2 * 10.5 + 3 * 4, "a_mae": 4.0, "c_mae": 2.0, "c_mse": 4.0}
    model.save(tmp_path / "a.keras")
    for each in model, pydtconv.saving.load_model(tmp_path / "a.keras"):
        assert each.evaluate(x, y, sample_weight=weights, verbose=0, return_dict=True) == expected
        history = each.fit(x, y, sample_weight=weights, verbose=0).history
        assert {name: values[0] for name, values in history.items()} == expected
