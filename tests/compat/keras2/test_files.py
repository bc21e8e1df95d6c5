"""Files of weights and models under any name, in the layout of Keras 2."""

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


@pytest.mark.parametrize("name", ["m.h5", "m.hdf5", "my_model", "m.model"])
def test_models(tf, tmp_path, name):
    model = made()
    model.save(tmp_path / name)
    other = tf.keras.models.load_model(tmp_path / name)
    np.testing.assert_array_equal(other.get_weights()[0], model.get_weights()[0])
    tf.keras.models.save_model(model, tmp_path / f"2{name}", include_optimizer=False)
    assert tf.keras.models.load_model(tmp_path / f"2{name}").count_params() == model.count_params()


def test_folders_of_tensorflow_are_refused(tf, tmp_path):
    for save in made().save, made().save_weights:
        for name, more in (("x/", {}), ("x", {"save_format": "tf"})):
            with pytest.raises(ValueError, match="folders are not here"):
                save(f"{tmp_path}/{name}", **more)
    with pytest.raises(ValueError, match="expected"):
        made().load_weights(tmp_path / "nothing")
