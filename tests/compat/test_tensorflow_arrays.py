"""Arrays as tensorflow's tensors: what they know, what tapes watch, what is not changed in place."""

import json

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, hooks
from pydtconv.compat.tensorflow import functions
from pydtconv.compat.tensorflow.arrays import Array, as_tensor


def test_arrays_are_as_little_changed_in_place_as_tensors(tf):
    x = before = tf.constant([1.0, 2.0])
    x += 1.0
    x /= [2.0, 3.0]
    np.testing.assert_array_equal(before, [1, 2])
    np.testing.assert_array_equal(x, [1, 1])
    assert x.dtype == "float32"
    with tf.GradientTape() as tape:
        tape.watch(before)
        y = before * before
    moved = tf.identity(before)
    moved += tape.gradient(y, before)
    np.testing.assert_array_equal(moved, [3, 6])


def test_arrays_are_numpy_arrays_that_tapes_watch():
    x = functions.constant([1.0, 2.0, 3.0])
    assert isinstance(x, Array)
    assert (x.dtype, (x * 2).numpy().tolist()) == (np.float32, [2, 4, 6])
    with GradientTape() as tape:
        tape.watch(x)
        y = functions.function_table()["reduce_sum"](x * x + 2.0 * x)
    np.testing.assert_allclose(tape.gradient(y, x), [4, 6, 8])
    v = functions.Variable(3.0)
    with GradientTape() as tape:
        y = v * v
    assert float(tape.gradient(y, v)) == 6.0


def test_slices_of_watched_arrays_are_recorded():
    x = functions.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with GradientTape() as tape:
        tape.watch(x)
        y = functions.function_table()["reduce_sum"]((x[:, 1:] - x[:, :-1]) * x[:, :2])
    np.testing.assert_allclose(tape.gradient(y, x), [[0, 0, 2], [-3, 0, 5]])
    assert x[:, 3:].shape == (2, 0)


def test_results_of_metrics_and_learning_rates_know_numpy():
    hooks.as_result.fill(as_tensor)
    try:
        metric = keras.metrics.MeanSquaredError()
        found = metric(np.ones((2, 1)), np.zeros((2, 1)))
        assert (found, found.numpy(), json.dumps(found)) == (1.0, np.float32(1), "1.0")
        schedule = keras.optimizers.schedules.ExponentialDecay(0.5, 10, 0.5)
        assert keras.optimizers.Adam(schedule).learning_rate.numpy() == np.float32(0.5)
        for dtype in ("uint8", "int32", "float32"):
            assert keras.ops.image.resize(np.ones((1, 4, 4, 1), dtype), (2, 2)).numpy().dtype == dtype
    finally:
        hooks.as_result.reset()
    assert type(metric.result()) is float


def test_shapes_of_arrays_are_tuples_that_know_tensorflows_names():
    x = functions.constant(np.ones((2, 3)), "float32")
    assert x.shape == x[:].get_shape() == (2, 3)
    assert ((x + 1).shape.as_list(), x.shape.rank, x.reshape(-1, x.shape[0]).shape) == ([2, 3], 2, (3, 2))
    x.set_shape((None, 3))
    with pytest.raises(ValueError, match=r"set_shape: expected a shape that \(2, 3\) fits, got \(5, 3\)"):
        x.set_shape((5, 3))


def test_functions_that_change_nothing_give_tensors(tf):
    x = tf.constant(np.arange(60, dtype="float32").reshape(4, 5, 3))
    found = [
        tf.slice(x, [0, 0, 0], [4, 5, -1]), x[:], tf.reshape(x, (4, 5, 3)), tf.cast(x, tf.float32), tf.squeeze(x),
        tf.transpose(x, [0, 1, 2]), tf.pad(x, [[0, 0]] * 3), tf.tile(x, [1, 1, 1]), tf.roll(x, 0, 0),
        tf.broadcast_to(x, (4, 5, 3)), tf.concat([x], 0), tf.identity(x), tf.split(x, 1)[0], tf.reverse(x, []),
        tf.image.resize(x, [4, 5]), tf.image.crop_to_bounding_box(x, 0, 0, 4, 5), tf.image.central_crop(x, 1.0),
        tf.image.pad_to_bounding_box(x, 0, 0, 4, 5), tf.image.rot90(x, 0), tf.clip_by_value(x, -1e9, 1e9),
    ]  # fmt: skip
    for each in found:
        np.testing.assert_array_equal(each.numpy(), x.numpy())
