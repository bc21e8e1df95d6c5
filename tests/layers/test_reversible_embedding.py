"""ReversibleEmbedding, against Keras where it is installed."""

import numpy as np
import pytest

import pydtconv
from tests.real_keras import import_keras

NUMBERS = np.random.default_rng(2).integers(0, 7, (16, 5)).astype("int32")
TARGETS = np.random.default_rng(3).integers(0, 7, (16, 5)).astype("int32")
KINDS = {
    "tied": {"mask_zero": True},
    "free": {"tie_weights": False, "logit_soft_cap": 2.0},
}


def model(keras, options):
    inputs = keras.Input((5,), dtype="int32")
    embedding = keras.layers.ReversibleEmbedding(7, 4, **options)
    return keras.Model(inputs, embedding(keras.layers.Dense(4)(embedding(inputs)), reverse=True))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_and_training_are_those_of_keras(kind, tmp_path):
    keras = import_keras()
    theirs, ours = model(keras, KINDS[kind]), model(pydtconv, KINDS[kind])
    ours.set_weights(theirs.get_weights())
    expected = theirs.predict(NUMBERS, verbose=0)
    found = ours.predict(NUMBERS, verbose=0)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, atol=1e-6)
    losses = []
    for library, each in (keras, theirs), (pydtconv, ours):
        each.compile(library.optimizers.Adam(0.05), library.losses.SparseCategoricalCrossentropy(from_logits=True))
        history = each.fit(NUMBERS, TARGETS, epochs=3, batch_size=8, shuffle=False, verbose=0).history
        losses.append(history["loss"])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    ours.save(tmp_path / "ours.keras")
    opened = keras.saving.load_model(tmp_path / "ours.keras")
    np.testing.assert_allclose(opened.predict(NUMBERS, verbose=0), ours.predict(NUMBERS, verbose=0), atol=1e-6)


def test_logits_have_a_dtype_of_their_own():
    layer = pydtconv.layers.ReversibleEmbedding(7, 4, reverse_dtype="float64")
    logits = layer(layer(NUMBERS), reverse=True)
    assert logits.dtype == np.float64
    np.testing.assert_allclose(logits, layer(NUMBERS) @ layer.get_weights()[0].T.astype("float64"))


def test_a_bad_cap_is_refused():
    with pytest.raises(ValueError, match="logit_soft_cap: expected a number above 0, got -1"):
        pydtconv.layers.ReversibleEmbedding(7, 4, logit_soft_cap=-1)
