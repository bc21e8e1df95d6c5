"""Regularizers by name, in layers and in training, beside Keras's."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, regularizers
from tests.real_keras import import_keras


@pytest.mark.parametrize(
    ("ours", "factors"),
    [("l1", (0.01, 0)), ("L2", (0, 0.01)), (regularizers.L1L2(0.3, 0.2), (0.3, 0.2)), (regularizers.l2(0.5), (0, 0.5))],
    ids=["l1", "L2", "L1L2", "l2"],
)
def test_regularizer(ours, factors):
    x = np.random.default_rng(3).normal(0, 2, (6, 8)).astype("float32")
    expected = factors[0] * np.abs(x).sum() + factors[1] * np.square(x).sum()
    value = regularizers.get(ours)(x)
    assert np.shape(value) == ()
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    copy = regularizers.deserialize(regularizers.serialize(regularizers.get(ours)))
    np.testing.assert_allclose(copy(x), expected, rtol=1e-5)


def test_regularizer_of_a_layer_is_at_its_variable():
    layer = layers.Conv2D(2, 1, kernel_regularizer="l2", bias_regularizer=regularizers.L1(0.5))
    layer.build((None, 4, 4, 3))
    assert layer.kernel.regularizer.l2 == 0.01
    assert layer.bias.regularizer.l1 == 0.5
    with pytest.raises(ValueError, match="l1"):
        regularizers.L1(-1)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3)).astype("float32")


@pytest.mark.parametrize("mode", ["rows", "columns"])
def test_orthogonal(mode):
    keras = import_keras()
    theirs = keras.regularizers.OrthogonalRegularizer(0.3, mode)(keras.ops.convert_to_tensor(X))
    ours = regularizers.get({"class_name": "OrthogonalRegularizer", "config": {"factor": 0.3, "mode": mode}})
    np.testing.assert_allclose(ours(X), float(theirs), rtol=1e-5)


def test_orthogonal_in_training():
    """Rows turn away from each other."""
    inputs = pydtconv.Input((4,))
    dense = layers.Dense(3, kernel_regularizer=regularizers.OrthogonalRegularizer(1.0, "columns"))
    model = pydtconv.Model(inputs, dense(inputs))
    model.compile(pydtconv.optimizers.SGD(0.1), "mse")
    before = float(dense.kernel_regularizer(dense.kernel.value))
    model.fit(np.zeros((8, 4)), np.zeros((8, 3)), epochs=5, verbose=0)
    assert float(dense.kernel_regularizer(dense.kernel.value)) < 0.9 * before
    with pytest.raises(ValueError, match=r"OrthogonalRegularizer: expected a matrix, got shape \(3,\)"):
        regularizers.OrthogonalRegularizer()(np.ones(3, "float32"))


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_losses_after_calls_on_arrays():
    """What the last call has added, of activities and by add_loss, before the penalties of weights."""

    def numbers(library, model):
        return [float(library.ops.convert_to_numpy(value)) for value in model.losses]

    found = []
    for library in (import_keras(), pydtconv):

        class Means(library.layers.Layer):
            def call(self, x, library=library):
                self.add_loss(library.ops.mean(x) * 2)
                return x

        activity = library.regularizers.L2(0.1)
        dense = library.layers.Dense(
            4, kernel_initializer="ones", kernel_regularizer="l2", activity_regularizer=activity
        )
        model = library.Sequential([library.Input((3,)), dense, Means()])
        values = [numbers(library, model)]
        for factor in (1, 2):
            model(factor * np.abs(X))
            values.append(numbers(library, model))
        found.append(values)
    assert [len(values) for values in found[1]] == [1, 3, 3]
    for ours, theirs in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_activity_of_a_layer_whose_output_is_joined_with_another():
    inputs = pydtconv.Input((4, 4, 3))
    first = layers.Conv2D(3, 1, activity_regularizer="l2", kernel_initializer="ones", name="first")(inputs)
    model = pydtconv.Model(inputs, layers.Concatenate()([first, layers.Conv2D(1, 1)(inputs)]))
    model.compile(pydtconv.optimizers.SGD(1.0), "mse")
    x, y = np.random.default_rng(0).normal(size=(2, 4, 4, 3)).astype("float32"), np.zeros((2, 4, 4, 4), "float32")
    model.train_on_batch(x, y)
    rows = x.reshape(-1, 3)
    of_output = rows @ np.ones((3, 3)) * (2 / y.size + 2 * 0.01 / 2)  # a penalty counts for one sample
    step = np.ones((3, 3)) - model.get_layer("first").get_weights()[0][0, 0]
    np.testing.assert_allclose(step, rows.T @ of_output, rtol=1e-4)


def test_penalties_of_weights_of_several_dtypes():
    model = pydtconv.Sequential([pydtconv.Input((4,))])
    model.add(layers.Dense(3, dtype="float64", kernel_regularizer="l2", kernel_initializer="ones"))
    model.add(layers.Dense(2, kernel_regularizer="l2", kernel_initializer="ones"))
    model.compile("sgd", "mse")
    expected = 0.01 * (12 + 6) + 144
    assert model.test_on_batch(np.ones((2, 4)), np.zeros((2, 2))) == pytest.approx(expected, rel=1e-6)
