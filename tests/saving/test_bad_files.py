"""Weights and models from others: damaged, swapped and hostile files are named and change nothing."""

import json
import os
import zipfile

import h5py
import numpy as np
import pytest

import pydtconv
from pydtconv import Input, Sequential, layers, saving
from pydtconv.files.reading import BadFileError
from tests.traced import memory_below

WHERE = "layers/dense/vars"


def network():
    model = Sequential([Input((6,)), layers.Dense(5)], name="small")
    model.compile("adam", "mse")
    model.train_on_batch(np.ones((2, 6)), np.ones((2, 5)))
    return model


def state(model):
    return [variable.value.tobytes() for variable in [*model.variables, *model.optimizer.variables]]


@pytest.fixture
def path(tmp_path):
    network().save_weights(tmp_path / "a.weights.h5")
    return tmp_path / "a.weights.h5"


def refused(path, message, error=BadFileError):
    """Checks that the file is refused with a message that names it, and that nothing of the model is changed."""
    model = network()
    before = state(model)
    with pytest.raises(error, match=message) as found:
        model.load_weights(path)
    assert path.name in str(found.value)
    assert state(model) == before


def put(path, key, make):
    with h5py.File(path, "r+") as file:
        folder, name = key.rsplit("/", 1)
        if key in file:
            del file[key]
        make(file[folder], name)


def test_a_link_to_another_file_is_not_followed(path, tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["secret"] = np.ones((6, 5), "float32")
        other["vars/0"] = np.ones((6, 5), "float32")
        other["vars/1"] = np.ones(5, "float32")
    put(path, f"{WHERE}/0", lambda group, name: group.__setitem__(name, h5py.ExternalLink("other.h5", "secret")))
    refused(path, r"expected data in this file, found a link to other\.h5:secret")
    put(path, WHERE, lambda group, name: group.__setitem__(name, h5py.ExternalLink("other.h5", "vars")))
    refused(path, r"found a link to other\.h5:vars")
    put(path, WHERE, lambda group, name: group.__setitem__(name, h5py.SoftLink("/optimizer/vars")))
    refused(path, "found a link")


def test_data_kept_in_another_file_is_not_read(path, tmp_path):
    (tmp_path / "raw").write_bytes(bytes(120))

    def external(group, name):
        group.create_dataset(name, (6, 5), "float32", external=[(str(tmp_path / "raw"), 0, 120)])

    def virtual(group, name):
        layout = h5py.VirtualLayout((6, 5), "float32")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "secret", (6, 5))
        group.create_virtual_dataset(name, layout)

    for make in external, virtual:
        put(path, f"{WHERE}/0", make)
        refused(path, f"{WHERE}/0: expected data in this file, found it kept in another one")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((6, 5), "complex64"), "expected real numbers, found complex64"),
        (np.zeros((6, 5), [("a", "f4"), ("b", "f4")]), r"expected real numbers, found \[\('a'"),
        (np.full((6, 5), b"text"), "expected real numbers, found"),
        (h5py.Empty("f4"), "expected real numbers"),
    ],
    ids=["complex", "compound", "strings", "empty"],
)
@pytest.mark.parametrize("key", [f"{WHERE}/0", "optimizer/vars/2"], ids=["layer", "optimizer"])
def test_other_than_real_numbers_is_refused(path, key, value, message):
    put(path, key, lambda group, name: group.__setitem__(name, value))
    refused(path, message)


def test_values_that_are_not_finite_are_taken_with_a_warning(path):
    put(path, f"{WHERE}/1", lambda group, name: group.__setitem__(name, np.full(5, np.nan, "float32")))
    model = network()
    with pytest.warns(UserWarning, match=r"1 variables hold values that are not finite: .*bias"):
        model.load_weights(path)
    assert np.isnan(model.get_weights()[1]).all()


def test_a_damaged_part_of_the_optimizer_changes_nothing(path):
    put(path, "optimizer/vars", lambda group, name: group.__setitem__(name, np.zeros(3)))
    refused(path, "optimizer/vars: expected a group, found a dataset")
    put(path, "optimizer/vars", lambda group, name: group.create_group(name).create_group("0"))
    model = network()
    with pytest.warns(UserWarning, match="the optimizer's state was skipped: expected 6 variables, found 1"):
        model.load_weights(path)


def test_data_that_cannot_be_unpacked_changes_nothing(path):
    model = network()
    slots = model.optimizer.variables

    def compressed(group, name):
        value = np.random.default_rng(0).normal(size=slots[2].shape)
        group.create_dataset(name, data=value.astype("float32"), compression="gzip", fletcher32=True)
        group.file.flush()

    put(path, "optimizer/vars/2", compressed)
    with h5py.File(path) as file:
        start = file["optimizer/vars/2"].id.get_chunk_info(0).byte_offset
    data = bytearray(path.read_bytes())
    data[start + 20] ^= 255
    path.write_bytes(data)
    refused(path, "a whole file of weights")


def test_the_shape_is_looked_at_before_compressed_data(path):
    def zeros(group, name):
        group.create_dataset(name, (1 << 14, 1 << 12), "float32", compression="gzip", chunks=(1 << 10, 1 << 12))

    put(path, f"{WHERE}/0", zeros)
    with memory_below(1 << 23):
        refused(path, r"kernel: expected shape \(6, 5\), found \(16384, 4096\)", ValueError)


def test_chunks_larger_than_the_data_are_refused(path):
    def huge(group, name):
        group.create_dataset(name, (6, 5), "float32", maxshape=(None, None), chunks=(1 << 13, 1 << 12), compression=1)

    put(path, f"{WHERE}/0", huge)
    refused(path, "expected chunks of 120 bytes at most, got 134217728")


@pytest.mark.parametrize("name", ["a.weights.h5", "a.keras"])
def test_a_pipe_is_refused_at_once(name, tmp_path):
    os.mkfifo(tmp_path / name)
    refused(tmp_path / name, "expected a regular file, got a pipe")
    if name == "a.keras":
        with pytest.raises(BadFileError, match="got a pipe"):
            saving.load_model(tmp_path / name)


# --- .keras ----------------------------------------------------------------------------------------------------------


def rewritten(path, change):
    """The config of a saved model after a change."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(parts["config.json"])
    config = change(config) or config
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, json.dumps(config) if name == "config.json" else data)


def layer_of(config, index=1):
    return config["config"]["layers"][index]


CHANGES = {
    "an empty initializer": (lambda c: layer_of(c)["config"].update(kernel_initializer={}), "initializer: expected"),
    "a list": (lambda c: [1, 2], "expected config.json to hold an object"),
    "no layers": (lambda c: c["config"].update(layers=None), "NoneType"),
    "a number for a class": (lambda c: layer_of(c).update(class_name=3), "expected"),
    "units of text": (lambda c: layer_of(c)["config"].update(units="many"), "units"),
    "an unknown argument": (lambda c: layer_of(c)["config"].update(colour=1), "colour"),
    "a function for a class": (
        lambda c: layer_of(c).update(class_name="load_model", module="keras.models"),
        "load_model",
    ),
    "a helper for a function": (
        lambda c: layer_of(c)["config"].update(
            activation={"module": "builtins", "class_name": "function", "config": "save_model"}
        ),
        "save_model",
    ),
    "a module": (lambda c: layer_of(c).update(class_name="np", module="keras.layers"), "np"),
    "code": (
        lambda c: layer_of(c)["config"].update(activation={"class_name": "__lambda__", "config": {"value": "4w"}}),
        "Python lambda",
    ),
    "far too many units": (lambda c: layer_of(c)["config"].update(units=1 << 40), r"units: expected int below 2\*\*31"),
    "more units than weights": (
        lambda c: layer_of(c)["config"].update(units=1 << 26),
        "kernel.*more than",
    ),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_a_config_that_is_not_one_names_the_file(change, message, tmp_path):
    path = tmp_path / "a.keras"
    network().save(path)
    rewritten(path, change)
    with memory_below(1 << 27), pytest.raises(BadFileError, match=message) as found:
        saving.load_model(path)
    assert str(path) in str(found.value)


def test_a_config_nested_too_deep_names_the_file(tmp_path):
    path = tmp_path / "a.keras"
    network().save(path)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("config.json", "[" * 100_000)
    with pytest.raises(BadFileError, match=r"a\.keras: .*nested 200 deep at most"):
        saving.load_model(path)


@pytest.mark.parametrize("missing", ["config.json", "model.weights.h5"])
def test_a_zip_without_its_parts_names_the_file(missing, tmp_path):
    path = tmp_path / "a.keras"
    network().save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if name != missing}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(BadFileError, match=rf"a\.keras: expected a '\.keras' file, found no {missing}"):
        saving.load_model(path)


@pytest.mark.parametrize("member", ["config.json", pytest.param("model.weights.h5", marks=pytest.mark.slow)])
@pytest.mark.parametrize("lie", [False, True], ids=["as it says", "size of ten bytes"])
def test_a_bomb_is_refused_before_it_is_unpacked(member, lie, tmp_path):
    path = tmp_path / "a.keras"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(member, "w") as file,
    ):
        for _ in range(100):
            file.write(b" " * (1 << 20))
    with zipfile.ZipFile(path, "a") as archive:
        for other in {"config.json", "model.weights.h5"} - {member}:
            archive.writestr(other, "{}")
    if lie:
        data = path.read_bytes().replace((100 << 20).to_bytes(4, "little"), (10).to_bytes(4, "little"))
        path.write_bytes(data)
    with memory_below(1 << 24), pytest.raises(BadFileError, match=r"a\.keras"):
        saving.load_model(path)


def test_text_named_as_a_model(tmp_path):
    (tmp_path / "a.keras").write_text("text")
    with pytest.raises(BadFileError, match=r"a\.keras: expected a '\.keras' file; BadZipFile"):
        saving.load_model(tmp_path / "a.keras")


def test_initializers_of_a_config_without_a_class():
    with pytest.raises(ValueError, match=r"initializer: expected a name, a config with a class_name"):
        pydtconv.initializers.get({})


@pytest.mark.parametrize("error", [FileNotFoundError, ValueError])
@pytest.mark.parametrize("name", ["none.keras", "none.h5", "none"])
def test_a_missing_model_is_what_keras_raises_of_either_kind(error, name, tmp_path):
    with pytest.raises(error, match="load_model: there is no file"):
        saving.load_model(tmp_path / name)
