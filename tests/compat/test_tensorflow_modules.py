"""`tf.Module` and `tf.train.Checkpoint`."""

import numpy as np
import pytest

import pydtconv as keras
from tests.disks import file_size_limit


def test_modules_and_checkpoints(tf, tmp_path):
    class Own(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.parts = tf.Variable([1.0, 2.0]), [tf.Variable(1.0, trainable=False)]
            self.dense = keras.layers.Dense(3)
            self.dense.build((None, 2))

    assert (len(Own().variables), len(Own().trainable_variables), Own().name) == (4, 3, "own")
    model, step = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]), tf.Variable(0)
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
    before = model.get_weights()
    for _ in range(3):
        checkpoint.step.assign_add(1)
        last = manager.save()
    model.set_weights([0 * w for w in before])
    step.assign(9)
    assert tf.train.latest_checkpoint(tmp_path) == last == manager.checkpoints[-1]
    assert len(manager.checkpoints) == 2
    checkpoint.restore(last).expect_partial()
    np.testing.assert_array_equal(model.get_weights()[0], before[0])
    assert int(step) == 3
    with pytest.raises(ValueError, match="step: expected the 1 variables of"):
        tf.train.Checkpoint(step=[]).read(last)
    with file_size_limit(256), pytest.raises(OSError, match="what was there before is untouched"):
        checkpoint.write(last)
    checkpoint.restore(last)
