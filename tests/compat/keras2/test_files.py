"""Files of weights and models under any name, in the layout of Keras 2."""

import gc

import h5py
import numpy as np
import pytest

import pydtconv
from pydtconv import layers

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def made():
    model = pydtconv.Sequential(
        [pydtconv.Input((4, 4, 1)), layers.Conv2D(2, 3, name="c"), layers.BatchNormalization(name="n")]
    )
    model.compile("adam", "mse")
    return model


@pytest.mark.parametrize("name", ["w.h5", "w.hdf5", "weights.best", "ckpt", "w.01-0.50.hd5"])
def test_weights(tf, tmp_path, name):
    model, other = made(), made()
    model.save_weights(tmp_path / name)
    with h5py.File(tmp_path / name) as file:
        assert [n.decode() for n in file.attrs["layer_names"]] == ["c", "n"]
        assert len(file["c"].attrs["weight_names"]) == 2
    other.load_weights(tmp_path / name)
    for a, b in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(FileExistsError):
        model.save_weights(tmp_path / name, overwrite=False)
    other.load_weights(tmp_path / name, by_name=True)


@pytest.mark.parametrize("name", ["w.h5", "ckpt"])
def test_weights_of_layers_of_one_name(tf, tmp_path, name):
    """As of a network and its moving average: they are kept in their order."""

    class Pair(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.one, self.two = (tf.keras.layers.Dense(3, name="same") for _ in range(2))

        def call(self, x):
            return self.two(self.one(x))

    model, other = Pair(), Pair()
    for each in model, other:
        each(np.ones((1, 2), "float32"))
    model.save_weights(tmp_path / name)
    other.load_weights(tmp_path / name)
    for a, b in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["m.h5", "m.hdf5", "my_model", "m.model"])
def test_models(tf, tmp_path, name):
    model = made()
    model.save(tmp_path / name)
    other = tf.keras.models.load_model(tmp_path / name)
    np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])
    tf.keras.models.save_model(model, tmp_path / f"2{name}", include_optimizer=False)
    assert tf.keras.models.load_model(tmp_path / f"2{name}").count_params() == model.count_params()


@pytest.mark.parametrize("name", ["m.keras", "m.h5", "m.hdf5", "my_model"])
def test_training_goes_on_behind_a_file(tf, tmp_path, name):
    x, y = np.random.default_rng(0).random((4, 4, 4, 1)).astype("float32"), np.zeros((4, 2, 2, 2))
    model = made()
    model.compile(tf.keras.optimizers.SGD(lr=0.1, momentum=0.9, decay=0.5), "mse")
    model.fit(x, y, nb_epoch=2, batch_size=2, shuffle=False, verbose=0)
    model.save(tmp_path / name)
    other = tf.keras.models.load_model(tmp_path / name)
    assert other.optimizer.get_config() == model.optimizer.get_config()
    assert int(other.optimizer.iterations) == 4
    for each in model, other:
        each.fit(x, y, epochs=1, batch_size=2, shuffle=False, verbose=0)
    for a, b in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_folders_of_tensorflow_are_refused(tf, tmp_path):
    for save in made().save, made().save_weights:
        for name, more in (("x/", {}), ("x", {"save_format": "tf"})):
            with pytest.raises(ValueError, match="folders are not here"):
                save(f"{tmp_path}/{name}", **more)
    with pytest.raises(ValueError, match="expected"):
        made().load_weights(tmp_path / "nothing")


def test_a_model_that_its_config_cannot_make_is_copied(tf, tmp_path):
    """As a folder of TensorFlow gave it back to the script that had saved it; weights are those of the file."""

    class Own(tf.keras.Model):
        def __init__(self, units):
            super().__init__()
            self.dense = layers.Dense(units)

        def get_config(self):
            return {"dense": self.dense}

        def call(self, x):
            return self.dense(x)

    x, model = np.ones((2, 3), "float32"), Own(2)
    expected = np.array(model(x))
    model.save(str(tmp_path / "model"))
    model.dense.kernel.assign(np.zeros((3, 2)))
    with pytest.warns(UserWarning, match="a copy of the model that was saved, with the file's weights: .*Own"):
        again = tf.keras.models.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(again(x), expected)
    np.testing.assert_array_equal(model(x), np.zeros((2, 2)))
    del model
    gc.collect()
    with pytest.raises(OSError, match="Own"):
        tf.keras.models.load_model(str(tmp_path / "model"))
