"""Models of strings: their lookups give the numbers of the same layers on arrays, in every way a model is run."""

from __future__ import annotations

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers

WORDS = ["red", "green", "blue", "", "a word of more than sixteen bytes", "é"]
GIVEN = np.array([["red", "blue"], ["strange", ""], ["é", "another"], ["a word of more than sixteen bytes", "red"]])
LOOKUPS = [
    {},
    {"num_oov_indices": 0},
    {"num_oov_indices": 3},
    {"num_oov_indices": 5, "mask_token": ""},
    {"mask_token": "red"},
    {"output_mode": "multi_hot"},
    {"output_mode": "count", "num_oov_indices": 7},
]


def _vocabulary(options: dict) -> list[str]:
    return [word for word in WORDS if word != options.get("mask_token")]


@pytest.mark.parametrize("options", LOOKUPS, ids=str)
@pytest.mark.parametrize("kind", ["U", "S", "O"])
def test_a_lookup_in_a_model_is_that_of_arrays(options, kind):
    lookup = layers.StringLookup(vocabulary=_vocabulary(options), **options)
    given = np.char.encode(GIVEN, "utf-8") if kind == "S" else GIVEN.astype(kind)
    given = given if options.get("num_oov_indices") != 0 else given[[0, 3]]
    inputs = keras.Input((2,), dtype="string")
    model = keras.Model(inputs, lookup(inputs))
    expected = np.asarray(lookup(given))
    np.testing.assert_array_equal(model.predict(given, verbose=0), expected)
    np.testing.assert_array_equal(model(given), expected)
    np.testing.assert_array_equal(model.predict(iter([(given[:1],), (given[1:],)]), verbose=0), expected)


def test_an_encoder_of_strings_inside_of_a_model():
    word = keras.Input((), dtype="string")
    lookup = layers.StringLookup(vocabulary=WORDS, num_oov_indices=1)
    encoder = keras.Sequential([lookup, layers.Embedding(8, 3)])
    model = keras.Model(word, encoder(word))
    np.testing.assert_array_equal(model.predict(GIVEN[:, 0], verbose=0), encoder.layers[1](lookup(GIVEN[:, 0])))


def test_strings_cast_to_strings():
    assert keras.ops.cast(GIVEN, "string") is GIVEN
    with pytest.raises(TypeError, match="dtype"):
        keras.ops.cast(np.ones(3), "string")


def test_a_model_of_strings_and_numbers_trains_and_is_saved(tmp_path):
    word, number = keras.Input((), dtype="string", name="word"), keras.Input((1,), name="number")
    x = layers.Embedding(8, 3)(layers.StringLookup(vocabulary=WORDS)(word))
    model = keras.Model({"word": word, "number": number}, layers.Dense(1)(layers.concatenate([x, number])))
    model.compile("sgd", "mse")
    data = {"word": GIVEN[:, 0], "number": np.ones((4, 1), "float32")}
    first = model.fit(data, np.ones(4), epochs=3, batch_size=2, verbose=0).history["loss"]
    assert first[2] < first[0]
    model.save(tmp_path / "strings.keras")
    again = keras.models.load_model(tmp_path / "strings.keras")
    assert again.inputs[1].node.operation.dtype == "string"
    np.testing.assert_array_equal(again.predict(data, verbose=0), model.predict(data, verbose=0))


def test_strings_of_a_model_are_hashed_as_arrays_are():
    word = keras.Input((1,), dtype="string")
    given = GIVEN[:, :1]
    for layer, inputs, arrays in (
        (layers.Hashing(5), word, given),
        (layers.HashedCrossing(5), [word] * 2, [given] * 2),
    ):
        np.testing.assert_array_equal(keras.Model(word, layer(inputs)).predict(given, verbose=0), layer(arrays))


def test_strings_and_numbers_are_not_taken_for_each_other():
    word, number = keras.Input((2,), dtype="string"), keras.Input((2,))
    of_words = keras.Model(word, layers.StringLookup(vocabulary=WORDS)(word))
    of_numbers = keras.Model(number, layers.Dense(2)(number))
    with pytest.raises(ValueError, match="expected strings, got numbers"):
        of_words.predict(np.ones((4, 2)), verbose=0)
    with pytest.raises(ValueError, match="expected numbers, got strings"):
        of_numbers.predict(GIVEN, verbose=0)
    with pytest.raises(ValueError, match="invert"):
        layers.StringLookup(vocabulary=WORDS, invert=True)(keras.Input((2,), dtype="int64"))
