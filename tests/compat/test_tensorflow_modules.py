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
    with pytest.raises(ValueError, match=r"step: expected the 1 variables of .*, got 2"):
        tf.train.Checkpoint(step=[step, step]).read(last)
    with file_size_limit(256), pytest.raises(OSError, match="what was there before is untouched"):
        checkpoint.write(last)
    checkpoint.restore(last)


class Late(keras.Model):
    """Makes its weights in its first call."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = (
            keras.layers.Dense(3), keras.layers.BatchNormalization(), keras.layers.Dense(2)
        )  # fmt: skip

    def call(self, x):
        return self.last(self.norm(self.first(x)))


def trained(x):
    model = Late()
    model.compile("adam", "mse")
    model.fit(x, np.ones((4, 2)), verbose=0)
    return model


def test_values_wait_for_variables_that_are_made_later(tf, tmp_path):
    x = np.random.default_rng(0).random((4, 5), "float32")
    old = trained(x)
    path = tf.train.Checkpoint(model=old, optimizer=old.optimizer).save(tmp_path / "a")
    new = Late()
    new.compile("adam", "mse")
    status = tf.train.Checkpoint(model=new, optimizer=new.optimizer).restore(path)
    status.expect_partial().assert_existing_objects_matched()
    with pytest.raises(AssertionError, match="model: 8 values wait for variables; optimizer: "):
        status.assert_consumed()
    np.testing.assert_array_equal(new(x), old(x))
    new.optimizer.build(new.trainable_variables)
    for ours, theirs in zip(new.optimizer.variables, old.optimizer.variables, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    status.assert_consumed()
    for model in (old, new):
        model.fit(x, np.ones((4, 2)), shuffle=False, verbose=0)
    np.testing.assert_array_equal(new(x), old(x))


@pytest.mark.parametrize("name", ["Adafactor", "Muon", "SGD"])
def test_values_wait_for_each_optimizer_and_for_modules(tf, tmp_path, name):
    class Own(tf.Module):
        pass

    variable = tf.Variable(np.ones((3, 4), "float32"))
    optimizer, module = getattr(keras.optimizers, name)(), Own()
    optimizer.build([variable])
    optimizer.variables[-1].assign(np.full(optimizer.variables[-1].shape, 3))
    module.w = tf.Variable([7.0])
    path = tf.train.Checkpoint(optimizer=optimizer, module=module).write(tmp_path / "a")
    optimizer, module = getattr(keras.optimizers, name)(), Own()
    status = tf.train.Checkpoint(optimizer=optimizer, module=module).read(path)
    optimizer.build([variable])
    module.w = tf.Variable([0.0])
    status.assert_consumed()
    assert (np.asarray(optimizer.variables[-1]) == 3).all()
    assert float(module.w[0]) == 7


def test_assertions_of_checkpoints_name_what_is_missing(tf, tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).write(tmp_path / "a")
    status = tf.train.Checkpoint(a=tf.Variable(0.0), c=tf.Variable(0.0)).read(path)
    with pytest.raises(AssertionError, match="b: nothing of this name to read it into"):
        status.assert_consumed()
    with pytest.raises(AssertionError, match="c: not in the file"):
        status.assert_existing_objects_matched()
    dense = keras.layers.Dense(2)
    path = tf.train.Checkpoint(a=[tf.Variable(np.ones((3, 3))), tf.Variable(1.0)]).write(tmp_path / "b")
    tf.train.Checkpoint(a=dense).restore(path)
    with pytest.raises(ValueError, match=r"expected \(3, 2\), got \(3, 3\)"):
        dense.build((None, 3))
