"""What tensorflow has that keeps something: lists of tensors, generators of random numbers, event files, settings."""

import subprocess
import sys

import numpy as np
import pytest

from pydtconv import function


def test_lists_of_tensors_are_written_and_stacked(tf):
    found = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in range(3):
        found = found.write(i, tf.ones((2,)) * i)
    np.testing.assert_array_equal(found.stack(), [[0, 0], [1, 1], [2, 2]])
    np.testing.assert_array_equal(found.concat(), [0, 0, 1, 1, 2, 2])
    assert found.read(2).numpy().tolist() == [2, 2]
    assert int(tf.TensorArray(tf.int32, 2).unstack(np.arange(6).reshape(2, 3)).read(1)[0]) == 3
    with pytest.raises(ValueError, match="index: expected less than 1, got 1"):
        tf.TensorArray(tf.float32, 1).write(1, 0.0)

    def doubled(x):
        parts = tf.TensorArray(tf.float32, 2)
        for i in range(2):
            parts = parts.write(i, x * i)
        return parts.stack()

    np.testing.assert_array_equal(function(doubled)(np.ones(2, "float32")), [[0, 0], [1, 1]])


def test_generators_repeat_their_numbers(tf):
    a, b = (tf.random.Generator.from_seed(7) for _ in range(2))
    np.testing.assert_array_equal(a.normal((4,)), b.normal((4,)))
    second = a.uniform((1000,), 2, 5, dtype=tf.int32)
    assert set(np.asarray(second).tolist()) == {2, 3, 4}
    np.testing.assert_array_equal(second, b.uniform((1000,), 2, 5, dtype=tf.int32))
    assert not np.array_equal(a.normal((4,)), a.normal((4,)))
    first, other = a.split(2)
    assert not np.array_equal(first.normal((4,)), other.normal((4,)))
    assert a.make_seeds(3).shape == (2, 3)
    tf.random.set_global_generator(b)
    assert tf.random.get_global_generator() is b


@pytest.mark.parametrize(
    ("name", "arguments", "mean", "deviation"),
    [
        ("stateless_normal", {"mean": 1.0, "stddev": 2.0}, 1, 2),
        ("stateless_truncated_normal", {}, 0, 0.88),
        ("stateless_uniform", {"minval": -1.0, "maxval": 1.0}, 0, 0.577),
        ("stateless_gamma", {"alpha": 4.0, "beta": 2.0}, 2, 1),
        ("stateless_poisson", {"lam": 4.0}, 4, 2),
        ("stateless_binomial", {"counts": 10.0, "probs": 0.3}, 3, 1.45),
    ],
)
def test_a_seed_gives_the_same_numbers_of_its_distribution(tf, name, arguments, mean, deviation):
    draw = getattr(tf.random, name)
    found = np.asarray(draw((4000,), seed=[1, 2], **arguments))
    np.testing.assert_array_equal(found, draw((4000,), seed=[1, 2], **arguments))
    assert not np.array_equal(found, draw((4000,), seed=[1, 3], **arguments))
    assert abs(found.mean() - mean) < 0.12
    assert abs(found.std() - deviation) < 0.12


def test_random_crops_boxes_and_seeds(tf):
    x = np.random.default_rng(0).random((8, 9, 3), "float32")
    crop = tf.image.stateless_random_crop(x, (4, 5, 3), (1, 2))
    np.testing.assert_array_equal(crop, tf.image.stateless_random_crop(x, (4, 5, 3), seed=(1, 2)))
    for seed in range(1, 20):
        begin, size, box = tf.image.sample_distorted_bounding_box(
            x.shape, [[[0.0, 0.0, 1.0, 1.0]]], seed, aspect_ratio_range=(0.5, 2.0), area_range=(0.2, 0.6)
        )
        cut = tf.slice(x, begin, size)
        assert 0.1 < cut.shape[0] * cut.shape[1] / 72 < 0.8
        np.testing.assert_allclose(np.asarray(box)[0, 0, :2] * (8, 9), np.asarray(begin)[:2], atol=1e-5)
    seeds = tf.random.split([1, 2], 3)
    assert seeds.shape == (3, 2)
    assert not np.array_equal(tf.random.fold_in([1, 2], 1), tf.random.fold_in([1, 2], 2))


def test_jpeg_files_are_of_a_quality(tf):
    pytest.importorskip("PIL")
    x = np.random.default_rng(0).integers(0, 256, (16, 24, 3), dtype="uint8")
    fine, coarse = tf.io.encode_jpeg(x), tf.io.encode_jpeg(x, quality=10)
    assert len(coarse.numpy()) < len(fine.numpy())
    assert tf.image.is_jpeg(fine)
    assert not tf.image.is_jpeg(tf.io.encode_png(x))
    assert np.asarray(tf.image.extract_jpeg_shape(fine)).tolist() == [16, 24, 3]
    part = tf.image.decode_and_crop_jpeg(fine, [2, 3, 4, 5])
    np.testing.assert_array_equal(part, tf.image.decode_jpeg(fine)[2:6, 3:8])
    near, far = (np.abs(np.asarray(tf.image.adjust_jpeg_quality(x, q), int) - x).mean() for q in (95, 5))
    assert near < far


@pytest.mark.filterwarnings("ignore")
def test_summaries_are_read_by_tensorboard(tf, tmp_path):
    pytest.importorskip("tensorboard")
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default(step=3):
        assert tf.summary.scalar("loss", tf.constant(0.5))
        tf.summary.histogram("w", np.arange(10.0), step=4)
        tf.summary.image("shown", np.zeros((2, 4, 5, 3)), step=5)
        tf.summary.text("said", "words")
        tf.function(lambda x: tf.summary.scalar("traced", tf.reduce_sum(x), step=tf.Variable(7)))(np.ones(3, "float32"))
        with tf.summary.record_if(False):
            assert not tf.summary.scalar("loss", 0.7)
    assert not tf.summary.scalar("loss", 0.7, step=1)
    writer.close()
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(tmp_path)).Reload()
    assert [(each.step, each.value) for each in found.Scalars("loss")] == [(3, 0.5)]
    assert [(each.step, each.value) for each in found.Scalars("traced")] == [(7, 3.0)]
    assert [each.step for each in found.Histograms("w")] == [4]
    assert [each.step for each in found.Images("shown/image/1")] == [5]
    assert found.Tensors("said")[0].tensor_proto.string_val[0] == b"words"
    with writer.as_default(), pytest.raises(ValueError, match=r"scalar|step: expected a number, got None"):
        tf.summary.scalar("loss", 1.0)


def test_numpy_of_tensorflow_is_numpys(tf):
    tnp = tf.experimental.numpy
    x = np.arange(6.0, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(tnp.transpose(tnp.asarray(x)), x.T)
    np.testing.assert_array_equal(tf.function(lambda x: tnp.sum(x, axis=1))(x), x.sum(1))
    assert (tnp.pi, tnp.newaxis, tnp.float64(1.5)) == (np.pi, None, 1.5)
    assert tnp.ones((2,)).numpy().tolist() == [1, 1]
    assert tnp.random.randn(3, 2).shape == (3, 2)


def test_there_is_one_device_and_no_switch_for_it(tf):
    assert [each.device_type for each in tf.config.list_physical_devices()] == ["CPU"]
    assert tf.config.list_physical_devices("GPU") == tf.config.get_visible_devices("GPU") == []
    for call in (
        tf.config.experimental.enable_op_determinism, tf.config.optimizer.set_jit, tf.config.set_soft_device_placement,
        tf.config.threading.set_intra_op_parallelism_threads,
    ):  # fmt: skip
        assert call(True) is None
    assert not tf.config.functions_run_eagerly()
    with tf.control_dependencies([]), tf.init_scope():
        pass
    assert tf.distribute.get_replica_context().all_reduce("sum", 3) == 3


def test_assertions_look_at_values(tf):
    tf.debugging.assert_positive([1.0, 2.0])
    tf.debugging.assert_near([1.0], [1.0 + 1e-7])
    tf.debugging.assert_shapes([(np.zeros((3, 4)), ("n", 4)), (np.zeros(3), ("n",))])
    for call, told in (
        (lambda: tf.debugging.assert_equal([1], [2], "not so"), "assert_equal: not so"),
        (lambda: tf.debugging.assert_rank(np.zeros((2, 2)), 1), "expected 1 axes"),
        (lambda: tf.debugging.assert_all_finite([np.inf], "far"), "far"),
        (lambda: tf.debugging.assert_shapes([(np.zeros((3, 4)), ("n", "n"))]), r"expected \('n', 'n'\)"),
        (lambda: tf.ensure_shape(np.zeros((3, 4)), [None, 5]), r"expected shape \(None, 5\)"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=told):
            call()


def test_a_wrong_letter_is_no_reason(tf):
    for name, told in (
        ("list_phisical_devices", "the nearest it has: tensorflow.config.list_physical_devices"),
        ("get_everything", "there is one process"),
    ):
        with pytest.raises(AttributeError, match=told):
            getattr(tf.config, name)
    with pytest.raises(AttributeError, match=r"no tensorflow\.nn\.sampled_softmax_loss: losses over samples"):
        tf.nn.sampled_softmax_loss  # noqa: B018
    with pytest.raises(ImportError, match=r"tensorflow\.saved_model: a graph of TensorFlow"):
        import tensorflow.saved_model  # noqa: F401


@pytest.mark.slow
def test_without_a_script_none_of_it_is_imported():
    code = "import sys, pydtconv\n"
    code += "for name in dir(pydtconv): getattr(pydtconv, name)\n"
    code += "print([m for m in sys.modules if m.startswith('pydtconv.compat')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_half_precision_is_that_of_bfloat16(tf):
    keras = tf.keras
    with pytest.warns(UserWarning, match="'mixed_float16' is not here: 'mixed_bfloat16' stands for it"):
        keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        assert keras.layers.Dense(2).compute_dtype == "bfloat16"
        with pytest.raises(ValueError, match="got 'float16'; instead of float16 use mixed_bfloat16"):
            keras.layers.Dense(2, dtype="float16")
    finally:
        keras.mixed_precision.set_global_policy("float32")
