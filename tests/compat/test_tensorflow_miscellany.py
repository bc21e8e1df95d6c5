"""Small names that scripts use, and `tf.distribute`."""

import numpy as np
import pytest

import pydtconv as keras


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
