"""Layers made of others."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers
from tests.real_keras import import_keras


def videos(k):
    inputs = k.Input((3, 6, 6, 2))
    x = k.layers.TimeDistributed(k.layers.Conv2D(4, 3, activation="relu"))(inputs)
    x = k.layers.TimeDistributed(k.layers.GlobalAveragePooling2D())(x)
    return k.Model(inputs, k.layers.TimeDistributed(k.layers.Dense(2))(x))


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_time_distributed_as_keras_and_in_its_files(tmp_path):
    keras = import_keras()
    ours, theirs = videos(pydtconv), videos(keras)
    assert ours.output_shape == theirs.output_shape == (None, 3, 2)
    ours.set_weights(theirs.get_weights())
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 6, 2)).astype("float32")
    expected = theirs.predict(x, verbose=0)
    np.testing.assert_allclose(ours.predict(x, verbose=0), expected, atol=1e-5)
    theirs.save(tmp_path / "theirs.keras")
    ours.save(tmp_path / "ours.keras")
    for k, name in ((pydtconv, "theirs"), (keras, "ours"), (pydtconv, "ours")):
        found = k.saving.load_model(tmp_path / f"{name}.keras").predict(x, verbose=0)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    with pytest.raises(ValueError, match=r"expected inputs \(n, steps, ...\), got shape \(None, 3\)"):
        layers.TimeDistributed(layers.Dense(2))(np.ones((2, 3), "float32"))
    with pytest.raises(ValueError, match="TimeDistributed: layer: expected a layer, got 3"):
        layers.TimeDistributed(3)


def test_variables_of_wrapped_layers_keep_their_paths(tmp_path):
    inputs = pydtconv.Input((3, 4))
    model = pydtconv.Model(inputs, layers.TimeDistributed(layers.Dense(2, name="inner"), name="outer")(inputs))
    model.save(tmp_path / "a.keras")
    copy = pydtconv.saving.load_model(tmp_path / "a.keras")
    assert (
        [v.path for v in copy.weights] == [v.path for v in model.weights] == ["outer/inner/kernel", "outer/inner/bias"]
    )


def test_a_pipeline():
    pipeline = layers.Pipeline([layers.Rescaling(2.0), layers.RandomBrightness(0.5, (0, 8)), layers.CenterCrop(2, 2)])
    x = np.ones((4, 4, 4, 3), "float32")
    np.testing.assert_array_equal(pipeline(x, training=False), np.full((4, 2, 2, 3), 2))
    assert (pipeline(x) != 2).any()
    again = pydtconv.saving.deserialize_keras_object(pydtconv.saving.serialize_keras_object(pipeline))
    assert [type(layer).__name__ for layer in again.layers] == ["Rescaling", "RandomBrightness", "CenterCrop"]
