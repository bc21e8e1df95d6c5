"""CategoryEncoding, Discretization, IntegerLookup and StringLookup."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers
from tests.real_keras import import_keras

CLASSES = np.array([[0, 2, 2], [3, 1, 0]])
NUMBERS = np.array([[-1.5, 0.2], [0.5, 7.0]], "float32")


@pytest.mark.parametrize("mode", ["one_hot", "multi_hot", "count"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_category_encoding(mode):
    x = CLASSES[:, :1] if mode == "one_hot" else CLASSES
    expected = np.asarray(import_keras().layers.CategoryEncoding(4, output_mode=mode)(x))
    np.testing.assert_array_equal(layers.CategoryEncoding(4, output_mode=mode)(x), expected)


def test_counts_with_weights():
    y = layers.CategoryEncoding(4, output_mode="count")(CLASSES, count_weights=np.full((2, 3), 0.5, "float32"))
    np.testing.assert_array_equal(y, [[0.5, 0, 1, 0], [0.5, 0.5, 0, 0.5]])


def test_discretization():
    layer = layers.Discretization([0.0, 0.5, 1.0])
    np.testing.assert_array_equal(layer(NUMBERS), [[0, 1], [2, 3]])
    inputs = pydtconv.Input((2,))
    np.testing.assert_array_equal(pydtconv.Model(inputs, layer(inputs)).predict(NUMBERS, verbose=0), [[0, 1], [2, 3]])
    learned = layers.Discretization(num_bins=4)
    learned.adapt(np.arange(100.0))
    np.testing.assert_allclose(learned.bin_boundaries, [24.75, 49.5, 74.25])
    again = layers.Discretization.from_config(layer.get_config())
    np.testing.assert_array_equal(again(NUMBERS), layer(NUMBERS))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_number_on_a_boundary_has_the_upper_bin(dtype):
    layer = layers.Discretization([0.1, 0.3, 0.7], dtype=dtype)
    np.testing.assert_array_equal(layer(np.array([0.1, 0.3, 0.7], dtype)), [1, 2, 3])


def test_integer_lookup():
    layer = layers.IntegerLookup(vocabulary=[12, 36, 1138, 42])
    x = np.array([[12, 1138, 42], [42, 1000, 36]])
    np.testing.assert_array_equal(layer(x), [[1, 3, 4], [4, 0, 2]])
    inputs = pydtconv.Input((3,), dtype="int64")
    np.testing.assert_array_equal(pydtconv.Model(inputs, layer(inputs)).predict(x, verbose=0), layer(x))
    back = layers.IntegerLookup(vocabulary=layer.get_vocabulary(), invert=True)
    np.testing.assert_array_equal(back(layer(x)), [[12, 1138, 42], [42, -1, 36]])
    masked = layers.IntegerLookup(vocabulary=[5, 7], mask_token=0, num_oov_indices=2)
    np.testing.assert_array_equal(masked(np.array([0, 5, 7, 8, 9])), [0, 3, 4, 1, 2])
    hot = layers.IntegerLookup(vocabulary=[5, 7], output_mode="multi_hot")
    np.testing.assert_array_equal(hot(np.array([[5, 9], [7, 7]])), [[1, 1, 0], [0, 0, 1]])


def test_adapting_puts_the_most_frequent_first():
    layer = layers.IntegerLookup(max_tokens=3)
    layer.adapt(np.array([4, 9, 9, 2, 9, 4]))
    assert layer.get_vocabulary() == [-1, 9, 4]
    words = layers.StringLookup()
    words.adapt(np.array(["cat", "dog", "dog", "eel"]))
    assert words.get_vocabulary() == ["[UNK]", "dog", "eel", "cat"]


def test_string_lookup():
    layer = layers.StringLookup(vocabulary=["a", "b", "c", "d"])
    x = np.array([["a", "c", "d"], ["d", "z", "b"]])
    np.testing.assert_array_equal(layer(x), [[1, 3, 4], [4, 0, 2]])
    back = layers.StringLookup(vocabulary=["a", "b", "c", "d"], invert=True)
    np.testing.assert_array_equal(back(layer(x)), [["a", "c", "d"], ["d", "[UNK]", "b"]])
    np.testing.assert_array_equal(back(np.array([-1, 1, 5])), ["[UNK]", "a", "[UNK]"])
    numbers = layers.IntegerLookup(output_mode="tf_idf")
    numbers.adapt([1, 1, 1, 2, 2, 3])  # each is a document
    np.testing.assert_allclose(numbers([1, 2, 4]), [1.133732, 0.916291, 1.098612, 0], rtol=1e-6)
    again = layers.StringLookup.from_config(layer.get_config())
    np.testing.assert_array_equal(again(x), layer(x))


@pytest.mark.parametrize("mode", ["one_hot", "multi_hot", "count"])
def test_the_mask_counts_as_nothing_in_vectors_of_classes(mode):
    words = layers.StringLookup(vocabulary=["a", "b"], mask_token="", output_mode=mode)
    numbers = layers.IntegerLookup(vocabulary=[7, 9], mask_token=0, output_mode=mode)
    expected = [[[0, 1, 0], [0, 0, 0], [1, 0, 0]]] if mode == "one_hot" else [[1, 1, 0]]
    np.testing.assert_array_equal(words(np.array([["a", "", "z"]])), expected)
    np.testing.assert_array_equal(numbers(np.array([[7, 0, 1]])), expected)
    again = layers.StringLookup(vocabulary=words.get_vocabulary(), mask_token="", output_mode=mode)
    assert again.get_vocabulary() == words.get_vocabulary() == ["[UNK]", "a", "b"]


@pytest.mark.parametrize(("mode", "vocabulary"), [("int", ["", "[UNK]", "b"]), ("multi_hot", ["[UNK]", "b", "a"])])
def test_adapting_fills_max_tokens(mode, vocabulary):
    layer = layers.StringLookup(max_tokens=3, mask_token="", output_mode=mode)
    layer.adapt(np.array(["a", "a", "b", "b", "c", ""]))
    assert layer.get_vocabulary() == vocabulary


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.CategoryEncoding(), "num_tokens: expected an integer of 1 or more, got None"),
        (lambda: layers.CategoryEncoding(3, sparse=True), "sparse: expected False"),
        (lambda: layers.Discretization(), "expected bin_boundaries or num_bins"),
        (lambda: layers.StringLookup(vocabulary=["a", "a"]), "vocabulary: expected each word once"),
        (lambda: layers.IntegerLookup(output_mode="other"), "output_mode: expected one of int, one_hot"),
        (lambda: layers.IntegerLookup(oov_method="other"), "oov_method: expected 'floormod' or 'farmhash'"),
        (lambda: layers.IntegerLookup(salt=3), "salt: expected None for oov_method='floormod'"),
        (lambda: layers.IntegerLookup(max_tokens=1), "max_tokens: expected None or 2 or more"),
        (lambda: layers.IntegerLookup(vocabulary_dtype="int32"), "vocabulary_dtype: expected 'int64'"),
        (lambda: layers.IntegerLookup(pad_to_max_tokens=True), "pad_to_max_tokens: expected max_tokens"),
        (lambda: layers.StringLookup(idf_weights=[1.0]), "idf_weights: expected output_mode='tf_idf'"),
        (lambda: layers.StringLookup(vocabulary=["a"], output_mode="tf_idf"), "idf_weights: expected them"),
        (lambda: layers.StringLookup(vocabulary=["a"], output_mode="tf_idf", idf_weights=[1, 2]), "expected 1 numbers"),
        (lambda: layers.CategoryEncoding(3)(np.array([[1, 5]])), "expected classes from 0 to 2, got 5"),
        (lambda: layers.CategoryEncoding(3)([-1, 2]), "expected classes from 0 to 2, got -1"),
        (lambda: layers.IntegerLookup(vocabulary=[7, 9], num_oov_indices=0)(np.array([7, 8])), "=0, got 8"),
        (lambda: layers.IntegerLookup()(CLASSES), "vocabulary: give one|expected a vocabulary"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_adapted_boundaries_are_saved(tmp_path):
    layer = layers.Discretization(num_bins=4)
    layer.adapt(np.arange(20.0))
    model = pydtconv.Sequential([pydtconv.Input((1,)), layer])
    model.save(tmp_path / "a.keras")
    copy = pydtconv.saving.load_model(tmp_path / "a.keras").layers[0]
    assert copy.get_config() == layer.get_config()
    copy.adapt(np.arange(40.0))
    assert copy.bin_boundaries == [9.75, 19.5, 29.25]


@pytest.mark.parametrize(
    ("make", "dtype", "expected"),
    [
        (lambda: layers.CategoryEncoding(3, "count", dtype="mixed_bfloat16"), "bfloat16", [0, 300, 0]),
        (lambda: layers.CategoryEncoding(3, dtype="float64"), "float64", [0, 1, 0]),
        (
            lambda: layers.Discretization([1.0, 2.0], output_mode="one_hot", dtype="mixed_bfloat16"),
            "bfloat16",
            [0, 1, 0],
        ),
        (lambda: layers.Discretization([1.0, 2.0], dtype="mixed_bfloat16"), "int32", 1),
    ],
)
def test_vectors_have_the_dtype_in_which_a_layer_computes(make, dtype, expected):
    inputs = pydtconv.Input((300,), dtype="int32")
    outputs = make()(inputs)
    assert outputs.dtype == dtype
    found = pydtconv.Model(inputs, outputs).predict(np.ones((2, 300), "int32"), verbose=0)
    np.testing.assert_array_equal(found.reshape(2, -1, np.size(expected))[:, 0], [np.ravel(expected)] * 2)


DOCUMENTS = [["a", "b", "a"], ["b", "c", "d"], ["b", "b", "d"]]


def test_weights_of_words_by_their_documents(tmp_path):
    layer = layers.StringLookup(output_mode="tf_idf", num_oov_indices=2)
    layer.adapt(np.array(DOCUMENTS))
    idf = {word: np.log(1 + 3 / (1 + sum(word in row for row in DOCUMENTS))) for word in "abcd"}
    words = layer.get_vocabulary()[2:]
    found = np.asarray(layer(np.array([["a", "b", "b", "x"]])))[0]
    expected = [row.count(word) * idf[word] for row in [["a", "b", "b"]] for word in words]
    np.testing.assert_allclose(found[2:], expected, rtol=1e-6)
    np.testing.assert_allclose(found[:2].sum(), np.mean([idf[word] for word in words]), rtol=1e-6)
    again = layers.StringLookup.from_config(layer.get_config())
    np.testing.assert_array_equal(again(np.array(DOCUMENTS)), layer(np.array(DOCUMENTS)))


@pytest.mark.parametrize("kind", ["string", "integer"])
def test_vectors_are_padded_to_max_tokens(kind):
    words, layer = (["a", "b"], layers.StringLookup) if kind == "string" else ([7, 9], layers.IntegerLookup)
    for mode in ("one_hot", "multi_hot", "count", "tf_idf"):
        weights = {"idf_weights": [0.5, 2.0]} if mode == "tf_idf" else {}
        plain = layer(vocabulary=words, output_mode=mode, **weights)
        padded = layer(vocabulary=words, output_mode=mode, max_tokens=5, pad_to_max_tokens=True, **weights)
        x = np.array([words[1]])
        np.testing.assert_array_equal(padded(x), np.pad(plain(x), [(0, 0)] * (np.ndim(plain(x)) - 1) + [(0, 2)]))


def test_unknown_values_by_fingerprints():
    # as tf.strings.to_hash_bucket_fast has them
    layer = layers.IntegerLookup(vocabulary=[10, 20, 30], num_oov_indices=4, oov_method="farmhash")
    np.testing.assert_array_equal(layer(np.array([100, 200, 300, 400, 20])), [3, 1, 3, 1, 5])
    texts = layers.StringLookup(vocabulary=["10"], num_oov_indices=4)
    np.testing.assert_array_equal(texts(np.array(["100", "200", "300", "400", "10"])), [3, 1, 3, 1, 4])
    many = np.arange(200, 260)
    salted = layers.IntegerLookup(vocabulary=[1], num_oov_indices=4, oov_method="farmhash", salt=[137, 42])
    hashed = layers.Hashing(4, salt=[137, 42])
    np.testing.assert_array_equal(salted(many), hashed(many))
    with pytest.raises(ValueError, match="of arrays alone, got a tensor"):
        layer(pydtconv.Input((1,), dtype="int64"))


@pytest.mark.parametrize("mode", ["int", "one_hot", "multi_hot", "count"])
@pytest.mark.parametrize("shape", [(4,), (4, 2)])
def test_discretization_has_a_shape_before_adapt(mode, shape):
    layer = layers.Discretization(num_bins=5, output_mode=mode)
    inputs = pydtconv.Input(shape)
    outputs = layer(inputs)
    assert layer.compute_output_shape((None, *shape)) == outputs.shape
    model = pydtconv.Model(inputs, outputs)
    x = np.random.default_rng(0).normal(size=(20, *shape)).astype("float32")
    with pytest.raises(ValueError, match="call adapt"):
        model(x)
    layer.adapt(x)
    found = model.predict(x, verbose=0)
    assert (found.shape, found.dtype) == ((20, *outputs.shape[1:]), outputs.dtype)
    np.testing.assert_array_equal(found, layers.Discretization(layer.bin_boundaries, output_mode=mode)(x))


def test_normalization_adapts_to_arrays_alone():
    with pytest.raises(TypeError, match="Normalization 'numbers': adapt: expected arrays, got 42"):
        layers.Normalization(name="numbers").adapt(iter([42]))


@pytest.mark.parametrize(("old", "mode"), [("binary", "multi_hot"), ("tf-idf", "tf_idf")])
def test_old_names_of_modes(old, mode):
    x = np.array([[1, 3], [2, 2]])
    weights = {"idf_weights": [0.1, 0.2, 0.3]} if mode == "tf_idf" else {}
    found, expected = (layers.IntegerLookup(vocabulary=[1, 2, 3], output_mode=m, **weights) for m in (old, mode))
    np.testing.assert_array_equal(found(x), expected(x))
    if mode == "multi_hot":
        np.testing.assert_array_equal(layers.CategoryEncoding(4, old)(x), layers.CategoryEncoding(4, mode)(x))
