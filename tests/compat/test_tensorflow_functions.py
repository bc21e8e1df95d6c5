"""Functions of tensorflow: on arrays and where they are traced, loops, gradients of one's own."""

import numpy as np

from pydtconv import GradientTape, function
from pydtconv.compat.tensorflow import functions
from pydtconv.compat.tensorflow.arrays import array


def test_loops_and_gradients_of_ones_own(tf):
    count, total = tf.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), [tf.constant(0), tf.constant(0)])
    assert (int(count), int(total)) == (5, 10)
    rows = tf.map_fn(fn=tf.reduce_sum, elems=np.ones((3, 4), "float32"), fn_output_signature=tf.float32)
    np.testing.assert_array_equal(rows, [4, 4, 4])

    @tf.custom_gradient
    def reversed_gradient(x):
        return tf.identity(x), lambda dy: -2.0 * dy

    v = tf.Variable(3.0)
    with GradientTape() as tape:
        y = reversed_gradient(v * 2.0) * 5.0
    assert float(tape.gradient(y, v)) == -20


def test_functions_compute_alike_on_arrays_and_where_they_are_traced():
    a = np.random.default_rng(0).standard_normal((2, 4, 6)).astype("float32")
    table = functions.math_table() | functions.nn_table()
    calls = {
        "reduce_mean": lambda f, x: f(x, axis=[1, 2]),
        "split": lambda f, x: f(x, [2, 4], axis=2)[1],
        "pad": lambda f, x: f(x, [[0, 0], [1, 2], [0, 0]]),
        "gather": lambda f, x: f(x, [2, 0], axis=1),
        "clip_by_norm": lambda f, x: f(x, 1.5),
        "l2_normalize": lambda f, x: f(x, axis=-1),
        "matmul": lambda f, x: f(x, x, transpose_b=True),
        "norm": lambda f, x: f(x, axis=1),
        "sigmoid_cross_entropy_with_logits": lambda f, x: f(labels=x * 0 + 0.3, logits=x),
        "transpose": lambda f, x: f(x, perm=[2, 0, 1]),
    }
    expected = {
        "reduce_mean": a.mean((1, 2)),
        "split": a[..., 2:],
        "pad": np.pad(a, ((0, 0), (1, 2), (0, 0))),
        "gather": a[:, [2, 0]],
        "clip_by_norm": a * 1.5 / np.linalg.norm(a),
        "l2_normalize": a / np.linalg.norm(a, axis=-1, keepdims=True),
        "matmul": a @ a.transpose(0, 2, 1),
        "norm": np.linalg.norm(a, axis=1),
        "sigmoid_cross_entropy_with_logits": np.log1p(np.exp(-np.abs(a))) + np.maximum(a, 0) - 0.3 * a,
        "transpose": a.transpose(2, 0, 1),
    }
    for name, call in calls.items():
        traced = function(lambda x, call=call, name=name: call(table[name], x))
        for found in call(table[name], array(a)), traced(a):
            np.testing.assert_allclose(found, expected[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_means_of_integers_are_integers():
    mean = functions.function_table()["reduce_mean"]
    assert (mean([1, 0, 1, 0]), mean([1.0, 2.0])) == (0, 1.5)
    x = np.array([[250, 255], [-3, -4]], "int32")
    for found in mean(x, axis=1), function(lambda x: mean(x, axis=1))(x):
        np.testing.assert_array_equal(found, [252, -3])
        assert found.dtype == "int32"
    bytes_of = mean(functions.constant([250, 255], "uint8"))
    assert (bytes_of, bytes_of.dtype) == (252, "uint8")


def test_weights_of_a_confusion_matrix_count_and_where_gives_places():
    table = functions.math_table()
    found = table["confusion_matrix"]([0, 1, 1], [0, 1, 0], weights=[1, 2.5, 3], dtype="float32")
    np.testing.assert_array_equal(found, [[1, 0], [3, 2.5]])
    np.testing.assert_array_equal(table["where"](np.array([[True, False], [True, True]])), [[0, 0], [1, 0], [1, 1]])
    np.testing.assert_array_equal(table["where"](np.array([True, False]), 1.0, 2.0), [1, 2])


def test_axes_that_are_not_named_are_tensorflows():
    table, x = functions.math_table(), np.array([[1.0, 5.0, 2.0], [4.0, 0.0, 3.0]], "float32")
    for call, expected in {
        "argmax": [1, 0, 1], "argmin": [0, 1, 0], "cumsum": x.cumsum(0), "cumprod": x.cumprod(0),
    }.items():  # fmt: skip
        for found in table[call](x), function(table[call])(x):
            np.testing.assert_array_equal(found, expected, err_msg=call)
    np.testing.assert_array_equal(table["cumsum"](x, axis=1, reverse=True), x[:, ::-1].cumsum(1)[:, ::-1])
    np.testing.assert_array_equal(table["argsort"]([2, 1, 3], direction="DESCENDING"), [2, 0, 1])
    values, places = table["unique"]([7, 3, 7, 5])
    assert (values.tolist(), places.tolist()) == ([7, 3, 5], [0, 1, 0, 2])


def test_arguments_have_tensorflows_names():
    table, x = functions.math_table(), np.arange(6, dtype="float32").reshape(2, 3)
    calls = {
        "concat": ({"values": [x, x], "axis": 0}, np.concatenate([x, x])),
        "expand_dims": ({"input": x, "axis": 1}, x[:, None]),
        "reshape": ({"tensor": x, "shape": (3, 2)}, x.reshape(3, 2)),
        "tile": ({"input": x, "multiples": (1, 2)}, np.tile(x, (1, 2))),
        "maximum": ({"x": x, "y": 2.0}, np.maximum(x, 2)),
        "subtract": ({"y": x, "x": 1.0}, 1 - x),
        "greater": ({"x": x, "y": 2.0}, x > 2),
        "squared_difference": ({"x": x, "y": 1.0}, (x - 1) ** 2),
        "exp": ({"x": x}, np.exp(x)),
        "roll": ({"input": x, "shift": 1, "axis": 1}, np.roll(x, 1, 1)),
    }
    for name, (arguments, expected) in calls.items():
        np.testing.assert_allclose(table[name](**arguments, name="n"), expected, rtol=1e-6, err_msg=name)


def test_functions_run_as_they_are_written_where_that_is_asked_for(tf):
    runs = []

    @tf.function
    def doubled(x):
        runs.append(1)
        return x * 2.0

    doubled(np.ones(3, "float32"))
    tf.config.run_functions_eagerly(True)
    try:
        for _ in range(2):
            np.testing.assert_array_equal(doubled(np.ones(3, "float32")), [2.0] * 3)
    finally:
        tf.config.run_functions_eagerly(False)
    doubled(np.ones(3, "float32"))
    assert len(runs) == 3


def test_sparse_tensors_are_cast_and_compared_as_sequences(tf):
    labels = tf.cast(tf.sparse.from_dense(np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]])), dtype=tf.int64)
    assert labels.dtype == tf.int64
    paths = tf.cast(tf.sparse.from_dense(tf.constant([[1, 3, 0], [3, 0, 0]])), tf.int64)
    distances = tf.edit_distance(paths, labels, normalize=False)
    assert tf.reduce_mean(distances).numpy() == 0.5
