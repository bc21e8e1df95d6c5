"""Copies and pickles of trained models: equal, apart from each other, and ready to be trained on."""

import copy
import pickle

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers

X = np.random.default_rng(0).standard_normal((12, 6, 6, 2)).astype("float32")
Y = np.arange(12) % 3
WAYS = {"pickle": lambda model: pickle.loads(pickle.dumps(model)), "deepcopy": copy.deepcopy}


def trained():
    model = keras.Sequential(
        [
            keras.Input((6, 6, 2)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.Flatten(),
            layers.Dense(3, activation="softmax"),
        ]
    )
    optimizer = keras.optimizers.AdamW(weight_decay=0.1)
    optimizer.exclude_from_weight_decay(var_list=[model.layers[0].kernel])
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(X, Y, batch_size=4, shuffle=False, verbose=0)
    return model


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_copy_goes_on_as_its_original_does(way):
    model = trained()
    other = way(model)
    before = other.get_weights()
    model.fit(X, Y, batch_size=4, shuffle=False, verbose=0)
    for one, another in zip(other.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, another)
    other.fit(X, Y, batch_size=4, shuffle=False, verbose=0)
    for one, another in zip(other.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, another)
    assert int(other.optimizer.iterations) == 6


def test_checkpoints_of_models_with_lambdas_are_written(tmp_path):
    inputs = keras.Input((4,))
    model = keras.Model(inputs, layers.Dense(2)(layers.Lambda(lambda x: 2 * x)(inputs)))
    model.compile("sgd", lambda y_true, y_pred: keras.ops.mean(keras.ops.square(y_true - y_pred), axis=-1))
    x, y = np.ones((4, 4)), np.ones((4, 2))
    model.fit(x, y, verbose=0, callbacks=[keras.callbacks.ModelCheckpoint(tmp_path / "m.keras")])
    with pytest.raises(ValueError, match="custom_objects"):
        keras.saving.load_model(tmp_path / "m.keras")
    loaded = keras.saving.load_model(
        tmp_path / "m.keras", custom_objects={"<lambda>": lambda value: 2 * value}, compile=False
    )
    np.testing.assert_array_equal(loaded.predict(x, verbose=0), model.predict(x, verbose=0))


class Growing(keras.Model):
    """Layers in a list, a dict and a tuple, and a function of its own."""

    def __init__(self):
        super().__init__()
        self.blocks = [layers.Dense(3)]
        self.others = {"a": layers.Dense(3)}
        self.pair = ([layers.Dense(3)], 1)
        self.scale = 2.0

    def call(self, x):
        for layer in (*self.blocks, *self.others.values(), *self.pair[0]):
            x = layer(x)
        return self.scale * x

    @keras.function
    def twice(self, x):
        return self(self(x))


class Owner:
    """No layer, but with a function."""

    def __init__(self, model):
        self.model = model

    @keras.function
    def squared(self, x):
        return self.model(x) ** 2


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_lists_of_copies_tell_what_joins_them(way):
    model = Growing()
    x = np.ones((2, 3), "float32")
    model.predict(x, verbose=0)
    other = way(model)
    other.blocks.append(layers.Dense(3))
    other.others["b"] = layers.Dense(3)
    other.pair[0].append(layers.Dense(3))
    other.predict(x, verbose=0)
    assert (len(model.weights), len(other.weights)) == (6, 12)
    other.blocks[0] = layers.Dense(3)
    other.predict(x, verbose=0)
    assert len(other.weights) == 12
    assert other.blocks[0] in other.layers


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_functions_of_copies_are_theirs(way):
    owner = Owner(Growing())
    x = np.ones((2, 3), "float32")
    before, twice = owner.squared(x), owner.model.twice(x)
    other = way(owner)
    other.model.set_weights([2 * weight for weight in other.model.get_weights()])
    assert not np.allclose(other.squared(x), before)
    assert not np.allclose(other.model.twice(x), twice)
    np.testing.assert_array_equal(owner.squared(x), before)
    np.testing.assert_array_equal(owner.model.twice(x), twice)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_copy_has_what_was_recorded_before(way):
    layer = layers.BatchNormalization(momentum=0.5)
    layer.build((None, 3))
    with keras.GradientTape():
        layer(np.full((2, 3), 4.0, "float32"), training=True)
    other = way(layer)
    np.testing.assert_array_equal(other.moving_mean, layer.moving_mean)
    np.testing.assert_array_equal(layer.moving_mean, [2, 2, 2])


class Derived(keras.Model):
    """A class of its own, which keeps its arguments, the outputs among them."""


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_deep_networks_take_no_deep_recursion(way):
    x = inputs = keras.Input((3,))
    for _ in range(200):
        x = 0.5 * x
    model = Derived(inputs, layers.Dense(2)(x))
    other = way(keras.Sequential([keras.Input((3,)), model]))
    np.testing.assert_array_equal(other(np.ones((2, 3), "float32")), model(np.ones((2, 3), "float32")))
