"""Files of models with attention, which Keras reads and writes as well."""

import numpy as np
import pytest

import pydtconv
from pydtconv import saving
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def attending(k):
    inputs = k.Input((5,))
    x = k.layers.Embedding(7, 8)(inputs)
    y = k.layers.MultiHeadAttention(2, 4, use_gate=True)(x, x)
    y = k.layers.GroupQueryAttention(4, 2, 1)(y, x)
    y = k.layers.RMSNormalization()(k.layers.Add()([x, y]))
    y = k.layers.EinsumDense("abc,cd->abd", output_shape=(None, 6), bias_axes="d", activation="gelu")(y)
    z = k.layers.AdditiveAttention()([y, y])
    y = k.layers.GroupNormalization(2)(k.layers.Attention(use_scale=True)([y, z]))
    return k.Model(inputs, k.layers.Dot((1, 1), normalize=True)([y, z]))


def randomized(model):
    rng = np.random.default_rng(5)
    model.set_weights([rng.uniform(0.1, 1, size=w.shape) for w in model.weights])
    return model


def equal_outputs(a, b):
    x = np.random.default_rng(1).integers(0, 7, (2, 5)).astype("float32")
    np.testing.assert_allclose(a.predict(x, verbose=0), b.predict(x, verbose=0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["weights.h5", "keras"])
@pytest.mark.parametrize("way", ["ours to Keras's", "Keras's to ours", "ours to ours"])
def test_files_go_both_ways(kind, way, tmp_path):
    libraries = {"ours": pydtconv, "Keras's": import_keras()}
    writer, reader = (libraries[name] for name in way.split(" to "))
    model = randomized(attending(writer))
    if kind == "keras":
        model.save(tmp_path / f"a.{kind}")
        load = saving.load_model if reader is pydtconv else reader.saving.load_model
        copy = load(tmp_path / f"a.{kind}")
    else:
        model.save_weights(tmp_path / f"a.{kind}")
        copy = attending(reader)
        copy.load_weights(tmp_path / f"a.{kind}")
    equal_outputs(model, copy)
