"""KerasFileEditor: files changed for models that have changed, against Keras's editor where it is installed."""

import h5py
import numpy as np
import pytest

from pydtconv import Input, Sequential, layers, saving
from pydtconv.files.reading import BadFileError
from tests.real_keras import import_keras


def network(units=1, optimizer="adam"):
    model = Sequential([Input((3,)), layers.Dense(2, name="a"), layers.Dense(units, name="b")], name="small")
    if optimizer:
        model.compile(optimizer, "mse")
        model.train_on_batch(np.ones((2, 3)), np.ones((2, units)))
    return model


@pytest.fixture(params=["m.keras", "m.weights.h5"])
def saved(request, tmp_path):
    model = network()
    (model.save if request.param.endswith(".keras") else model.save_weights)(tmp_path / request.param)
    return model, tmp_path / request.param


def test_what_is_saved_is_what_was_read(saved, tmp_path):
    model, path = saved
    saving.KerasFileEditor(path).save(tmp_path / "again.weights.h5")
    again = network()
    again.load_weights(tmp_path / "again.weights.h5")
    for found, expected in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)
    again.load_weights(tmp_path / "again.weights.h5", by_name=True)


def test_the_objects_are_shown(saved, capsys):
    saving.KerasFileEditor(saved[1]).summary()
    text = capsys.readouterr().out
    assert "  layers/dense\n    0: shape=(3, 2), dtype=float32\n    1: shape=(2,), dtype=float32\n" in text
    assert "  optimizer\n" in text


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize(("units", "optimizer"), [(1, "adam"), (3, None)])
def test_comparisons_count_as_those_of_keras(saved, units, optimizer, capsys):
    keras = import_keras()
    reference = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), keras.layers.Dense(units)])
    if optimizer:
        reference.compile(optimizer, "mse")
        reference.train_on_batch(np.ones((2, 3)), np.ones((2, units)))
    expected = keras.saving.KerasFileEditor(str(saved[1])).compare(reference)
    capsys.readouterr()
    found = saving.KerasFileEditor(saved[1]).compare(network(units, optimizer))
    assert found["status"] == expected["status"]
    assert found["error_count"] == expected["error_count"]
    assert found["match_count"] == (14 if optimizer else 2)  # Keras counts each layer's weights twice
    if not optimizer:
        assert "layers/dense_1/0: expected shape (2, 3), the file has shape (2, 1)" in capsys.readouterr().out


def test_a_file_is_changed_for_a_model_with_another_layer(saved, tmp_path):
    model, path = saved
    editor = saving.KerasFileEditor(path)
    editor.delete_object("optimizer")
    editor.rename_object("layers/dense_1", "dense_2")
    editor.add_object("layers/dense_1", {"0": np.eye(2), "1": np.ones(2), "2": np.ones(7)})
    editor.delete_weight("layers/dense_1", "2")
    editor.add_weights("dense_2", {"1": np.array([5.0])})
    editor.resave_weights(tmp_path / "new.weights.h5")
    wider = Sequential([Input((3,)), layers.Dense(2), layers.Dense(2), layers.Dense(1)])
    assert editor.compare(wider) == {"status": "success", "error_count": 0, "match_count": 6}
    wider.load_weights(tmp_path / "new.weights.h5")
    first, bias, second, ones, last, five = wider.get_weights()
    np.testing.assert_array_equal(first, model.get_weights()[0])
    np.testing.assert_array_equal(last, model.get_weights()[2])
    np.testing.assert_array_equal(second, np.eye(2))
    assert (*ones, *five) == (1, 1, 5)
    assert (bias == model.get_weights()[1]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda editor: editor.delete_object("nothing"), "expected the name of an object, got 'nothing'"),
        (lambda editor: editor.rename_object("dense", "dense_1"), "expected a name that is free"),
        (lambda editor: editor.add_object("layers/dense", {}), "expected a path that is free"),
        (lambda editor: editor.delete_weight("dense", "7"), "layers/dense: expected one of 0, 1, got '7'"),
        (lambda editor: editor.save("weights.txt"), r"expected a name that ends in '\.weights\.h5'"),
    ],
)
def test_bad_arguments(saved, change, message):
    with pytest.raises(ValueError, match=message):
        change(saving.KerasFileEditor(saved[1]))


def test_a_name_of_several_objects_asks_for_the_path(saved):
    editor = saving.KerasFileEditor(saved[1])
    editor.add_object("other/dense", {"0": np.ones(1)})
    with pytest.raises(ValueError, match="which layers/dense, other/dense are called: give the whole path"):
        editor.delete_object("dense")


def test_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        saving.KerasFileEditor(tmp_path / "none.keras")
    with pytest.raises(ValueError, match=r"expected a '\.keras' or '\.weights\.h5' file"):
        saving.KerasFileEditor(tmp_path / "weights.txt")
    (tmp_path / "bad.weights.h5").write_bytes(b"no weights")
    with pytest.raises(BadFileError, match="a whole file of weights"):
        saving.KerasFileEditor(tmp_path / "bad.weights.h5")


@pytest.mark.parametrize("link", [h5py.ExternalLink("b.weights.h5", "/layers"), h5py.SoftLink("/others")], ids=repr)
def test_links_to_other_places_are_refused(link, tmp_path):
    with h5py.File(tmp_path / "a.weights.h5", "w") as file:
        file["others/vars/0"] = np.zeros(2)
        file["layers"] = link
    with pytest.raises(BadFileError, match=r"a.weights.h5: //layers: expected data in this file, found a link"):
        saving.KerasFileEditor(tmp_path / "a.weights.h5")
