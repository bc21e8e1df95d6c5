"""tf.data and tf's functions: as TensorFlow documents them, on arrays and in what is recorded."""

import json

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import GradientTape, function, hooks
from pydtconv.compat.tensorflow import functions, image, image_parts
from pydtconv.compat.tensorflow.arrays import Array, array, as_tensor
from pydtconv.compat.tensorflow.data import AUTOTUNE, Dataset


def values(dataset):
    return [np.asarray(each).tolist() for each in dataset]


def test_pipelines_give_what_tensorflow_documents():
    numbers = Dataset.range(10)
    assert values(numbers.batch(4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert values(numbers.batch(4, drop_remainder=True).map(lambda x: x * 2)) == [[0, 2, 4, 6], [8, 10, 12, 14]]
    assert values(numbers.skip(2).take(3).repeat(2)) == [2, 3, 4, 2, 3, 4]
    assert values(numbers.filter(lambda x: x % 5 == 0).concatenate(Dataset.range(2))) == [0, 5, 0, 1]
    assert values(numbers.batch(3).unbatch().prefetch(AUTOTUNE)) == list(range(10))
    assert sorted(values(numbers.shuffle(4, seed=1))) == list(range(10)) != values(numbers.shuffle(4, seed=1))
    pairs = Dataset.zip((numbers, Dataset.from_tensor_slices({"a": np.arange(3)})))
    assert [(int(i), int(d["a"])) for i, d in pairs] == [(0, 0), (1, 1), (2, 2)]
    assert [int(i) + int(x) for i, x in numbers.take(3).enumerate(start=5)] == [5, 7, 9]
    assert int(numbers.reduce(0, lambda state, x: state + x)) == 45


def test_batches_of_arrays_of_different_lengths_are_padded():
    lengths = Dataset.range(1, 4).map(lambda n: np.full(int(n), int(n)))
    assert values(lengths.padded_batch(2)) == [[[1, 0], [2, 2]], [[3, 3, 3]]]
    assert values(lengths.padded_batch(2, [4], -1, drop_remainder=True)) == [[[1, -1, -1, -1], [2, 2, -1, -1]]]
    pairs = lengths.map(lambda x: {"x": x, "n": len(x)})
    (batch,) = pairs.padded_batch(3, padded_shapes={"x": [None], "n": []})
    assert (np.asarray(batch["x"]).shape, np.asarray(batch["n"]).tolist()) == ((3, 3), [1, 2, 3])
    with pytest.raises(ValueError, match=r"expected extents that hold \(3,\), got \[2\]"):
        list(lengths.padded_batch(3, [2]))


def test_cardinality_follows_from_the_steps():
    numbers = Dataset.range(10)
    known = {
        10: numbers, 3: numbers.batch(4), 2: numbers.batch(4, True), 20: numbers.repeat(2), 7: numbers.skip(3),
        -1: numbers.repeat(), -2: numbers.filter(bool), 5: numbers.repeat().take(5),
    }  # fmt: skip
    for count, dataset in known.items():
        assert int(dataset.cardinality()) == count
        assert dataset.num_batches == (count if count >= 0 else None)
    with pytest.raises(TypeError, match="infinite"):
        len(numbers.repeat())


def test_shuffling_is_anew_in_each_round_and_a_cache_is_not():
    shuffled = Dataset.range(20).shuffle(20)
    assert values(shuffled) != values(shuffled)
    kept = Dataset.range(20).shuffle(20, reshuffle_each_iteration=False)
    assert values(kept) == values(kept)
    calls = []
    cached = Dataset.range(3).map(lambda x: calls.append(1) or x).cache()
    assert values(cached) == values(cached) == [0, 1, 2]
    assert len(calls) == 3


def test_errors_of_threads_and_missing_names_are_told():
    def bad(x):
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        list(Dataset.range(3).map(bad).prefetch(1))
    with pytest.raises(AttributeError, match=r"pydtconv has no tf\.data\.Dataset\.window"):
        Dataset.range(3).window(2)
    with pytest.raises(ValueError, match="arrays of one length"):
        Dataset.from_tensor_slices((np.zeros(2), np.zeros(3)))


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


def test_postscript_is_no_image(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    image_module.new("RGB", (20, 16)).save(tmp_path / "x.jpg", format="EPS")
    with pytest.raises(OSError, match="no image that can be decoded"):
        image.decode_image(image.read_file(tmp_path / "x.jpg"))


def test_images_are_read_and_changed(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype="uint8")
    image_module.fromarray(pixels).save(tmp_path / "x.png")
    found = image.decode_image(image.read_file(tmp_path / "x.png"), channels=3)
    np.testing.assert_array_equal(found, pixels)
    floats = image.convert_image_dtype(found, "float32")
    assert floats.max() <= 1
    np.testing.assert_array_equal(image.flip_left_right(found), pixels[:, ::-1])
    assert image.resize(found, (3, 4)).shape == (3, 4, 3)
    assert image.random_crop(found, (4, 4, 3)).shape == (4, 4, 3)
    assert image.resize_with_crop_or_pad(found, 10, 4).shape == (10, 4, 3)
    np.testing.assert_allclose(image.yuv_to_rgb(image.rgb_to_yuv(floats)), floats, atol=1e-5)
    np.testing.assert_allclose(np.asarray(image.adjust_hue(floats, 0.0)), floats, atol=1e-4)
    standard = image.per_image_standardization(found)
    assert abs(float(np.mean(standard))) < 1e-5


def test_crossentropy_has_its_slope_at_zero_and_is_precise():
    x = np.array([0, 0, 200, -200, 20, -20], "float32")
    y = np.array([0, 1, 1, 0, 1, 0], "float32")
    with GradientTape() as tape:
        logits = functions.Variable(x)
        losses = functions.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)
    np.testing.assert_allclose(losses, [np.log(2), np.log(2), 0, 0, *[np.exp(-20.0)] * 2], rtol=1e-5)
    with GradientTape() as tape:
        loss = functions.sigmoid_cross_entropy_with_logits(labels=y[:2], logits=logits[:2])
    np.testing.assert_allclose(np.asarray(tape.gradient(loss, logits))[:2], [0.5, -0.5], rtol=1e-6)


def test_weights_of_a_confusion_matrix_count_and_where_gives_places():
    table = functions.math_table()
    found = table["confusion_matrix"]([0, 1, 1], [0, 1, 0], weights=[1, 2.5, 3], dtype="float32")
    np.testing.assert_array_equal(found, [[1, 0], [3, 2.5]])
    np.testing.assert_array_equal(table["where"](np.array([[True, False], [True, True]])), [[0, 0], [1, 0], [1, 1]])
    np.testing.assert_array_equal(table["where"](np.array([True, False]), 1.0, 2.0), [1, 2])


def test_results_of_metrics_and_learning_rates_know_numpy():
    hooks.as_result.fill(as_tensor)
    try:
        metric = keras.metrics.MeanSquaredError()
        found = metric(np.ones((2, 1)), np.zeros((2, 1)))
        assert (found, found.numpy(), json.dumps(found)) == (1.0, np.float32(1), "1.0")
        schedule = keras.optimizers.schedules.ExponentialDecay(0.5, 10, 0.5)
        assert keras.optimizers.Adam(schedule).learning_rate.numpy() == np.float32(0.5)
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


def test_what_fails_in_a_pipeline_is_told_where_its_spec_is_asked_for():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = Dataset.range(3).map(lambda x: x.nothing).element_spec


def test_images_resized_by_the_nearest_pixels_keep_their_dtype():
    labels = functions.constant(np.array([[1, 3], [2, 1]], "uint8")[..., None])
    found = image.resize(labels, (4, 4), method="nearest")
    assert found.dtype == "uint8"
    np.testing.assert_array_equal(found[::2, ::2], labels)
    assert image.resize(labels, (4, 4)).dtype == "float32"


def test_a_strategy_has_one_replica(tf):
    with pytest.raises(ValueError, match="there is no TPU"):
        tf.distribute.cluster_resolver.TPUClusterResolver()
    strategy = tf.distribute.MirroredStrategy(["GPU:0"])
    with strategy.scope():
        v = tf.Variable(2.0)
    assert (strategy.num_replicas_in_sync, float(strategy.run(lambda x: x * v, args=(tf.constant(3.0),)))) == (1, 6.0)
    assert strategy.reduce(tf.distribute.ReduceOp.SUM, tf.constant([1.0, 2.0]), axis=0) == 3
    batches = tf.data.Dataset.range(4).batch(2)
    assert strategy.experimental_distribute_dataset(batches) is batches
    with pytest.raises(NotImplementedError, match="mpiexec"):
        tf.distribute.MultiWorkerMirroredStrategy()


def test_small_names_that_scripts_use(tf, tmp_path):
    assert tf.optimizers.Adam is keras.optimizers.Adam
    assert tf.compat.as_bytes("JFIF") in b"..JFIF.."
    assert tf.is_tensor(tf.ones(2))
    assert not tf.is_tensor([1.0])
    assert tf.nest.map_structure(lambda x: x + 1, {"a": [1, 2]}) == {"a": [2, 3]}
    assert (tf.test.is_gpu_available(), tf.config.list_physical_devices("GPU")) == (False, [])
    image_module = pytest.importorskip("PIL.Image")
    assert image_module
    pixels = np.arange(24, dtype="uint8").reshape(2, 4, 3)
    tf.io.write_file(str(tmp_path / "a.png"), tf.io.encode_png(pixels))
    np.testing.assert_array_equal(tf.io.decode_png(tf.io.read_file(tf.io.gfile.glob(tmp_path / "*.png")[0])), pixels)


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


def test_convolutions_and_pooling_of_tf_nn():
    table, rng = functions.nn_table(), np.random.default_rng(0)
    x, w = rng.normal(size=(2, 6, 6, 3)).astype("float32"), rng.normal(size=(3, 3, 3, 4)).astype("float32")
    np.testing.assert_array_equal(table["conv2d"](x, w, [1, 2, 2, 1], "SAME"), keras.ops.conv(x, w, 2, "same"))
    np.testing.assert_allclose(
        table["avg_pool2d"](x, ksize=2, strides=2, padding="VALID"),
        x.reshape(2, 3, 2, 3, 2, 3).mean((2, 4)), rtol=1e-5, atol=1e-6,
    )  # fmt: skip
    np.testing.assert_array_equal(table["max_pool2d"](x, [1, 3, 3, 1], 3, "VALID")[0, 0, 0], x[0, :3, :3].max((0, 1)))
    assert float(table["compute_average_loss"](x[:, 0, 0, 0] * 0 + 3, global_batch_size=4)) == 1.5
    first, y = x.transpose(0, 3, 1, 2), np.asarray(table["conv2d"](x, w, [1, 2, 2, 1], "SAME", dilations=1))
    found = table["conv2d"](first, w, [1, 1, 2, 2], "SAME", data_format="NCHW")
    np.testing.assert_allclose(found, y.transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-6)
    biased = table["bias_add"](first, np.arange(3, dtype="float32"), "NCHW")
    np.testing.assert_array_equal(biased, first + np.arange(3, dtype="float32")[:, None, None])
    with pytest.raises(NotImplementedError, match=r"padding: expected 'SAME' or 'VALID', got .*: use tf.pad"):
        table["conv2d"](x, w, 1, [[0, 0], [1, 1], [1, 1], [0, 0]])
    with pytest.raises(ValueError, match="data_format: expected NHWC or NCHW, got 'HWCN'"):
        table["max_pool"](x, 2, 2, "SAME", "HWCN")


def test_pipelines_of_pipelines():
    numbers = Dataset.range(5)
    assert values(numbers.batch(2).rebatch(3)) == [[0, 1, 2], [3, 4]]
    assert values(numbers.batch(2).rebatch(3, drop_remainder=True)) == [[0, 1, 2]]
    assert values(numbers.flat_map(lambda n: Dataset.range(int(n)))) == [0, 0, 1, 0, 1, 2, 0, 1, 2, 3]
    # as tf.data's documentation has it
    repeated = Dataset.range(1, 6).interleave(lambda n: Dataset.from_tensors(n).repeat(6), 2, 4)
    assert values(repeated) == [1] * 4 + [2] * 4 + [1] * 2 + [2] * 2 + [3] * 4 + [4] * 4 + [3] * 2 + [4] * 2 + [5] * 6
    assert values(numbers.shard(2, 1)) == [1, 3]
    assert int(numbers.shard(2, 0).cardinality()) == 3
    mixed = Dataset.sample_from_datasets([numbers, Dataset.range(10, 13)], weights=[0.5, 0.5], seed=1)
    assert sorted(values(mixed)) == [0, 1, 2, 3, 4, 10, 11, 12]
    assert set(values(Dataset.sample_from_datasets([numbers.repeat(), numbers], [0.0, 1.0]))) == set(range(5))


def test_patches_and_images_in_others():
    x = np.arange(2 * 5 * 6 * 3, dtype="float32").reshape(2, 5, 6, 3)
    found = image_parts.extract_patches(x, [1, 2, 3, 1], [1, 2, 3, 1], [1, 1, 1, 1], "VALID")
    np.testing.assert_array_equal(found[1, 1, 1], x[1, 2:4, 3:6].reshape(-1))
    np.testing.assert_array_equal(
        image_parts.pad_to_bounding_box(x, 1, 2, 8, 9), np.pad(x, ((0, 0), (1, 2), (2, 1), (0, 0)))
    )
    with pytest.raises(ValueError, match="expected a box that holds 5x6 pixels"):
        image_parts.pad_to_bounding_box(x, 1, 2, 5, 9)
    padded = np.asarray(image_parts.resize_with_pad(x, 10, 20, image_parts.ResizeMethod.NEAREST_NEIGHBOR))
    assert padded.shape == (2, 10, 20, 3)
    np.testing.assert_array_equal(padded[:, ::2, 4:16:2], x)
    np.testing.assert_allclose(image_parts.total_variation(x), [3 * 4 * 6 * 18 + 3 * 5 * 5 * 3] * 2)


def test_flips_at_random_are_drawn_anew_in_traced_code():
    x = np.arange(4, dtype="float32").reshape(1, 2, 2, 1)
    flipped = function(image.random_flip_left_right)
    found = {tuple(np.asarray(flipped(x)).ravel().tolist()) for _ in range(40)}
    assert found == {(0, 1, 2, 3), (1, 0, 3, 2)}


def test_losses_have_their_old_short_names(tf):
    y, p = np.ones((2, 3), "float32"), np.zeros((2, 3), "float32")
    np.testing.assert_array_equal(tf.keras.losses.mse(y, p), [1, 1])
    assert tf.keras.metrics.MAE is keras.losses.mean_absolute_error
    loss = tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.NONE)
    np.testing.assert_array_equal(loss(y, p), [1, 1])


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
