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
