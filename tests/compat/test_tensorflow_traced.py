"""Functions of tensorflow that take what is traced or symbolic where they take arrays."""

import numpy as np
import pytest

LISTS = {
    "square": lambda tf, x: tf.reduce_sum(tf.square([x, 2 * x])),
    "reduce_sum": lambda tf, x: tf.reduce_sum([[x, x], [x, 3 * x]]),
    "reduce_max": lambda tf, x: tf.reduce_max([x, 2 * x]),
    "math.sqrt": lambda tf, x: tf.reduce_mean(tf.math.sqrt([x])),
    "cast": lambda tf, x: tf.reduce_sum(tf.cast([x, x], tf.float32)),
    "multiply": lambda tf, x: tf.reduce_sum(tf.multiply([x, x], 3.0)),
    "convert_to_tensor": lambda tf, x: tf.reduce_sum(tf.convert_to_tensor([x, x]) * 2.0),
}


@pytest.mark.parametrize("name", LISTS)
def test_gradients_go_through_lists_of_tensors(tf, name):
    """Of a list of tensors functions make one, which the tape sees."""
    value = np.array([1.0, 4.0], "float32")
    x = tf.Variable(value)
    with tf.GradientTape() as tape:
        y = LISTS[name](tf, x * 1.0)
    gradient = np.asarray(tape.gradient(y, x))
    step, expected = 1e-2, []
    for i in range(2):
        moved = [value + step * sign * np.eye(2, dtype="float32")[i] for sign in (1, -1)]
        high, low = (float(LISTS[name](tf, tf.constant(each))) for each in moved)
        expected.append((high - low) / (2 * step))
    np.testing.assert_allclose(gradient, expected, rtol=1e-2, atol=1e-3)


def test_tables_look_up_symbolic_keys(tf):
    """Strings and integers, those that no table has, and further numbers, as of arrays."""
    words, numbers = np.array(["a", "b", "strange", "c", "other"], object), np.array([3, 5, 99, 7, 100], "int64")
    tables = {
        "strings": (
            tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b", "c"], [4, 5, 6]), -1),
            words,
        ),
        "floats": (
            tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([3, 5, 7], [0.5, 1.5, 2.5], tf.int64), 0.0),
            numbers,
        ),
        "empty": (tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1), words),
        "vocabulary": (
            tf.lookup.StaticVocabularyTable(
                tf.lookup.KeyValueTensorInitializer(["a", "b"], [0, 1], tf.string, tf.int64), 3
            ),
            words,
        ),
        "buckets": (tf.lookup.StaticVocabularyTable(None, 4), words),
    }
    for name, (table, keys) in tables.items():
        x = tf.keras.Input((), dtype="string" if keys is words else "int64")
        model = tf.keras.Model(x, tf.keras.layers.Lambda(table.lookup)(x))
        np.testing.assert_array_equal(model.predict(keys, verbose=0), table.lookup(tf.constant(keys)), err_msg=name)


def test_loss_of_sparse_labels_in_traced_code(tf):
    """TensorFlow 1's function of a SparseTensor of traced values, cast by Keras, is that of the rows themselves."""
    rows = np.array([[1, 2, 0], [1, 0, 0]], "int32")
    logits = np.random.default_rng(0).normal(size=(5, 2, 4)).astype("float32")

    @tf.function
    def loss(values, logits):
        labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], values, (2, 3))
        labels = tf.keras.ops.cast(labels, "int32")
        return tf.compat.v1.nn.ctc_loss(labels=labels, inputs=logits, sequence_length=[5, 5])

    expected = tf.nn.ctc_loss(rows, logits, [2, 1], [5, 5], blank_index=-1)
    np.testing.assert_allclose(loss(np.array([1, 2, 1], "float32"), logits), expected, rtol=1e-6)


def test_versions_have_the_modules_of_tensorflow(tf):
    from tensorflow.compat.v1 import math, nn

    assert nn.relu is tf.nn.relu or float(nn.relu(-1.0)) == 0
    assert int(math.floormod(7, 3)) == int(tf.compat.v2.math.floormod(7, 3)) == 1
    assert tf.compat.v1.train.Example is not None


def test_a_model_gives_the_dict_that_a_layer_has(tf):
    """Attributes of layers that are dicts may be outputs of a model."""
    layer, x = tf.keras.layers.Dense(2), tf.keras.Input((3,))
    layer.held = {"a": x + 1.0, "b": x * 2.0}
    found = tf.keras.Model(x, layer.held).predict(np.ones((1, 3), "float32"), verbose=0)
    np.testing.assert_array_equal(found["b"], np.full((1, 3), 2.0))


def test_symbolic_strings_are_hashed_as_arrays_are(tf):
    words = np.array([["x"], ["yy"], ["mask"], ["w"]], object)
    x = tf.keras.Input((1,), dtype="string")
    for layer in (tf.keras.layers.Hashing(4), tf.keras.layers.Hashing(5, mask_value="mask", output_mode="one_hot")):
        expected = layer(words)
        np.testing.assert_array_equal(tf.keras.Model(x, layer(x)).predict(words, verbose=0), expected)
    crossing = tf.keras.layers.HashedCrossing(7)
    found = tf.keras.Model(x, crossing([x, x])).predict(words, verbose=0)
    np.testing.assert_array_equal(found, crossing([words, words]))
    with pytest.raises(ValueError, match="salt: expected None for strings in tensors"):
        tf.keras.layers.Hashing(4, salt=3)(x)


def test_functions_of_numpy_give_arrays_of_numpy(tf):
    """As of TensorFlow's tensors: their elements are keys of dicts."""
    x = tf.constant([0.25, 0.75])
    for function in (np.argsort, np.sort, np.flip, np.squeeze, np.transpose, np.unique, np.cumsum, np.round):
        assert type(function(x)) is np.ndarray, function
    assert type(np.stack([x, x])) is type(np.concatenate([x, x])) is np.ndarray
    assert {0: "a", 1: "b"}[np.argsort(x)[::-1][0]] == "b"


def test_sparse_tensors_keep_fractions_and_gradients(tf):
    """In traced code and on a tape, of variables and of what is watched; places outside are refused."""
    values, places = np.array([1.5, 2.0, -3.25], "float32"), [[0, 1], [2, 0], [2, 3]]
    expected = np.zeros((3, 4), "float32")
    expected[tuple(np.transpose(places))] = values

    def whole(values):
        return tf.sparse.to_dense(tf.SparseTensor(places, values, [3, 4]))

    np.testing.assert_array_equal(tf.function(whole)(tf.constant(values)), expected)
    np.testing.assert_array_equal(whole(tf.sparse.from_dense(expected).values), expected)
    for x in (tf.Variable(values), tf.constant(values)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(whole(x) ** 2)
        np.testing.assert_allclose(tape.gradient(y, x), 2 * values)
    with pytest.raises(ValueError, match=r"indices: expected those of shape \(2, 2\)"):
        tf.sparse.to_dense(tf.SparseTensor([[0, -1]], [5], [2, 2]))


def test_range_has_the_widest_dtype_of_its_arguments(tf):
    cases = {
        (0.5, 3): ("float32", [0.5, 1.5, 2.5]),
        (np.float32(2.5),): ("float32", [0, 1, 2]),
        (0, 2, 0.5): ("float32", [0, 0.5, 1, 1.5]),
        (np.float64(0.5), 2): ("float64", [0.5, 1.5]),
        (np.int64(3),): ("int64", [0, 1, 2]),
        (5, 1, -2): ("int32", [5, 3]),
    }
    for arguments, (dtype, expected) in cases.items():
        found = tf.range(*arguments)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)


def test_fill_has_the_gradient_of_its_value(tf):
    x = tf.Variable([1.5, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.fill([2, 2], x[0]) ** 2)
    np.testing.assert_allclose(tape.gradient(y, x), [12.0, 0.0])
