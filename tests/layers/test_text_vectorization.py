"""TextVectorization: on arrays, in models of strings, in files; beside recorded values of Keras."""

import json
import zipfile

import h5py
import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from tests.layers.text_vectorization_cases import ADAPTED, CASES, INPUTS, RECORDED, outcomes

VALUES = json.loads(RECORDED.read_text())
TEXTS = np.array([[text] for text in ADAPTED])


@pytest.mark.parametrize(("options", "expected"), list(zip(CASES, VALUES, strict=True)), ids=str)
def test_values_are_those_of_keras(options, expected):
    """Of vectors of more axes Keras gathers axis 1, where its shapes say the last one: these are not compared."""
    found = outcomes(keras, options)
    assert found["vocabulary"] == expected["vocabulary"]
    known = slice(3 if options.get("output_mode", "int") != "int" else len(INPUTS))
    for a, b in zip(found["values"][known], expected["values"][known], strict=True):
        if b is not None:
            np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("options", CASES[::3], ids=str)
def test_a_layer_in_a_model_is_that_of_arrays(options, tmp_path):
    """By predict, by a call, batch by batch, and in a file."""
    layer = layers.TextVectorization(**options)
    if "vocabulary" not in options:
        layer.adapt(ADAPTED)
    inputs = keras.Input((1,), dtype="string")
    model = keras.Model(inputs, layer(inputs))
    expected = np.asarray(layer(TEXTS))
    assert model.outputs[0].dtype == expected.dtype == ("int64" if layer.output_mode == "int" else "float32")
    np.testing.assert_array_equal(model.predict(TEXTS, verbose=0), expected)
    np.testing.assert_array_equal(model(TEXTS), expected)
    np.testing.assert_array_equal(model.predict_on_batch(TEXTS[:1]), layer(TEXTS[:1]))
    model.save(tmp_path / "texts.keras")
    again = keras.models.load_model(tmp_path / "texts.keras")
    np.testing.assert_array_equal(again.predict(TEXTS, verbose=0), expected)


def test_rows_as_long_as_the_longest_of_each_batch():
    """What reads them has another extent in each batch, and trains so; inside of another model there is no telling."""
    layer = layers.TextVectorization()
    layer.adapt(ADAPTED)
    numbers = keras.Input((None,), dtype="int64")
    x = layers.GRU(3)(layers.Embedding(layer.vocabulary_size(), 4)(numbers))
    inner = keras.Model(numbers, layers.Dense(1)(x))
    inputs = keras.Input((1,), dtype="string")
    model = keras.Model(inputs, inner(layer(inputs)))
    texts = TEXTS[[0, 1, 3]]
    parts = [inner.predict(layer(part), verbose=0) for part in (texts[:2], texts[2:])]
    np.testing.assert_allclose(model.predict(texts, batch_size=2, verbose=0), np.concatenate(parts), atol=1e-6)
    np.testing.assert_allclose(model(texts[2:]), parts[1], atol=1e-6)
    model.compile("sgd", "mse")
    losses = model.fit(texts, np.ones(3), epochs=3, batch_size=1, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    outer = keras.Input((1,), dtype="string")
    fresh = layers.TextVectorization(vocabulary=["cat"])
    with pytest.raises(ValueError, match="output_sequence_length: expected an integer"):
        keras.Model(outer, keras.Model(inputs, fresh(inputs))(outer)).predict(texts, verbose=0)


def test_another_vocabulary_is_another_step():
    layer = layers.TextVectorization(output_mode="count", vocabulary=[f"w{i}" for i in range(300)])
    inputs = keras.Input((1,), dtype="string")
    model = keras.Model(inputs, layer(inputs))
    assert model.predict(np.array([["w0 w299"]]), verbose=0).nonzero()[1].tolist() == [1, 300]
    layer.set_vocabulary([f"v{i}" for i in range(299)] + ["w0"])
    assert model.predict(np.array([["w0 w299"]]), verbose=0).nonzero()[1].tolist() == [0, 300]


def test_data_sets_and_functions_of_a_user():
    """adapt reads arrays, lists and batches; functions get arrays of strings and give arrays, lists or bytes."""
    whole = layers.TextVectorization()
    whole.adapt(ADAPTED)
    batches = iter([ADAPTED[:2], (ADAPTED[2:], "labels")])
    for data in (TEXTS, np.char.encode(ADAPTED, "utf-8"), batches, tuple(ADAPTED)):
        layer = layers.TextVectorization()
        layer.adapt(data)
        assert layer.get_vocabulary() == whole.get_vocabulary()
    part = layers.TextVectorization()
    part.adapt(iter([ADAPTED[:1], ADAPTED[1:]]), steps=1)
    assert part.get_vocabulary(include_special_tokens=False) == ["the", "sat", "on", "mat", "cat"]

    def changed(texts):
        assert texts.dtype.kind == "U"
        return np.char.replace(texts, "a", "b")

    def one(text):
        if getattr(text, "ndim", 1):
            raise NotImplementedError
        return text.split(",")

    for split in (lambda texts: np.char.split(texts, ","), lambda texts: [text.split(",") for text in texts], one):
        layer = layers.TextVectorization(standardize=changed, split=split, vocabulary=["b", "c d"])
        assert layer(["a,c d", "x,b,,"]).tolist() == [[2, 3, 0, 0], [1, 2, 0, 0]]
    assert layer(["a,c d", "x,b,,"]).dtype == "int64"
    with pytest.raises(ValueError, match="split: expected words of 2 texts, got 1"):
        layers.TextVectorization(split=lambda texts: [["a"]], vocabulary=["a"])(["a", "b"])


def test_a_vocabulary_in_a_file(tmp_path):
    (tmp_path / "words.txt").write_text("the\ncat\n")
    layer = layers.TextVectorization(vocabulary=str(tmp_path / "words.txt"))
    assert layer.get_vocabulary() == ["", "[UNK]", "the", "cat"]
    assert layers.TextVectorization.from_config(layer.get_config()).get_vocabulary() == layer.get_vocabulary()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.TextVectorization(standardize="upper"), "standardize: expected one of .*, got 'upper'"),
        (lambda: layers.TextVectorization(split=" "), "split: expected one of 'whitespace', 'character', None or a f"),
        (lambda: layers.TextVectorization(ngrams=0), "ngrams: expected integers of 1 or more"),
        (lambda: layers.TextVectorization(ngrams=(1, 2.5)), "ngrams: expected None, an integer"),
        (lambda: layers.TextVectorization(output_sequence_length=0), "output_sequence_length: expected"),
        (lambda: layers.TextVectorization(output_sequence_length="a"), "output_sequence_length: expected"),
        (lambda: layers.TextVectorization(output_mode="count", output_sequence_length=3), "expected None with output_"),
        (lambda: layers.TextVectorization(output_mode="words"), "output_mode: expected one of"),
        (lambda: layers.TextVectorization(ragged=True), "ragged: is not supported"),
        (lambda: layers.TextVectorization(sparse=True), "sparse: is not supported"),
        (lambda: layers.TextVectorization(pad_to_max_tokens=True), "pad_to_max_tokens: expected max_tokens"),
        (
            lambda: layers.TextVectorization(max_tokens=3, vocabulary=["a", "b"]),
            "vocabulary: expected up to max_tokens",
        ),
        (lambda: layers.TextVectorization()(["a"]), "expected a vocabulary"),
        (lambda: layers.TextVectorization(vocabulary=["a"])([1.0]), "expected strings, got an array of float"),
        (
            lambda: layers.TextVectorization(vocabulary=["a"])([["a", "b"]]),
            "expected texts of one axis, or a last axis",
        ),
        (lambda: layers.TextVectorization(vocabulary=["a"])(keras.Input((1,))), "expected an Input"),
    ],
)
def test_refused_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_lookups_of_a_file_of_keras(tmp_path):
    """Keras has what `adapt` found in assets, and weights of words beside the weights of layers."""

    def layer(name, **config):
        return {"module": "keras.layers", "class_name": name, "config": {"vocabulary": None, **config}}

    texts = layer("TextVectorization", output_mode="tf_idf", vocabulary_size=3, standardize=None, split="whitespace")
    words = layer("StringLookup", vocabulary_size=3, oov_method="floormod", salt=None)
    whole = layer("IntegerLookup", vocabulary_size=2, oov_method="floormod", salt=None)
    found = []
    for data, name, lines, inputs in (
        (texts, "text_vectorization", "[UNK]\nthe\ncat", np.array([["the cat cat dog"]])),
        (words, "string_lookup", "[UNK]\nthe\ncat", np.array([["cat"], ["dog"]])),
        (whole, "integer_lookup", "-1\n7", np.array([[7], [8]])),
    ):
        kind = "int64" if name.startswith("int") else "string"
        source = {
            "module": "keras.layers",
            "class_name": "InputLayer",
            "config": {"batch_shape": [None, 1], "dtype": kind},
        }
        config = {"name": "net", "layers": [source, data]}
        with h5py.File(tmp_path / "weights.h5", "w") as file:
            if data is texts:
                file["layers/text_vectorization/vars/idf_weights"] = np.float32([0.5, 0.25, 2.0])
        with zipfile.ZipFile(tmp_path / "a.keras", "w") as archive:
            sequential = {"module": "keras", "class_name": "Sequential", "config": config}
            archive.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
            archive.writestr("config.json", json.dumps(sequential))
            archive.write(tmp_path / "weights.h5", "model.weights.h5")
            archive.writestr(f"assets/layers/{name}/vocabulary.txt", lines)
        found.append(keras.models.load_model(tmp_path / "a.keras").predict(inputs, verbose=0).tolist())
    assert found == [[[0.5, 0.25, 4.0]], [[2], [0]], [[1], [0]]]


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
@pytest.mark.parametrize("mode", ["int", "tf_idf"])
def test_first_of_a_sequential_without_an_input(mode, shape):
    texts = np.array(["a b c", "c d", "e"]).reshape(shape)
    reading = layers.TextVectorization(output_mode=mode)
    reading.adapt(texts)
    model = keras.Sequential([reading, layers.Rescaling(2.0)])
    np.testing.assert_allclose(model.predict(texts, verbose=0), 2 * np.asarray(reading(texts), "float32"))
    many = np.array([f"a b {i}" for i in range(100)]).reshape(shape)
    assert len(model.predict(many, verbose=0)) == 100
    longer = np.array(["a b c d e"]).reshape(shape)
    assert model.predict(longer, verbose=0).shape == reading(longer).shape
    fitted = keras.Sequential([layers.StringLookup(vocabulary=["a"], output_mode="one_hot"), layers.Dense(2)])
    fitted.compile("sgd", "mse")
    fitted.fit(np.array(["a", "b"]), np.zeros((2, 2)), verbose=0)
