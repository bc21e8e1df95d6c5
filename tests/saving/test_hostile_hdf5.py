"""HDF5 files that were written to take memory or time: every reader of weights refuses them, or reads them at once."""

from contextlib import nullcontext

import h5py
import numpy as np
import pytest

from pydtconv import Input, Sequential, layers, saving
from pydtconv.files.reading import BadFileError
from pydtconv.models.weight_files import is_without_weights
from tests.traced import memory_below

LIMIT = 1 << 24


def network():
    return Sequential([Input((3,)), layers.Dense(2, name="dense")], name="small")


def by_name(path):
    model = network()
    model.load_weights(path, by_name=True)
    return model


READERS = {
    "editor": saving.KerasFileEditor,
    "by_name": by_name,
    "by_place": lambda path: network().load_weights(path),
    "unbuilt": lambda path: is_without_weights(path.read_bytes(), str(path)),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.weights.h5"


def read(reader, path, refused):
    """Reads within limits; refused: the error's text, empty where the file is read."""
    error = pytest.raises(ValueError, match=rf"{path.name}.*{refused}") if refused else nullcontext()
    with memory_below(LIMIT), error:
        READERS[reader](path)


@pytest.mark.parametrize("reader", READERS)
def test_groups_that_hold_one_another(reader, path):
    """As a tree it has 2^60 places."""
    network().save_weights(path)
    with h5py.File(path, "r+") as file:
        inner = file.create_group("last")
        for level in range(60):
            outer = file.create_group(f"level{level}")
            outer["a"] = outer["b"] = inner
            inner = outer
        inner["again"] = file["/"]
    read(reader, path, "")


@pytest.mark.parametrize("reader", READERS)
def test_groups_inside_of_groups(reader, path):
    """The paths of the groups have 9 MB in all."""
    with h5py.File(path, "w") as file:
        group = file
        for _ in range(3000):
            group = group.create_group("a")
    read(reader, path, {"by_place": "does not fit the model"}.get(reader, "expected paths of 4096 characters at most"))


def test_the_editor_does_not_make_what_a_header_says(path):
    with h5py.File(path, "w") as file:
        group = file.create_group("layers/dense/vars")
        group.create_dataset("0", (1 << 40,), "float32", chunks=(1 << 10,))
    read("editor", path, "layers/dense/vars: expected less data, found 4398046511104 bytes")


def test_the_editor_counts_data_for_each_of_its_names(path):
    with h5py.File(path, "w") as file:
        group = file.create_group("layers/dense/vars")
        group["0"] = np.zeros(1 << 18, "float32")
        for i in range(1, 200):
            group[str(i)] = group["0"]
    read("editor", path, "expected less data")


def test_names_of_layers_that_many_groups_share(tmp_path, monkeypatch):
    monkeypatch.setattr("pydtconv.files.reading.FREE_BYTES", 1 << 20)
    path = tmp_path / "a.h5"
    network().save(path)
    with h5py.File(path, "r+") as file:
        group = file["model_weights"]
        group["dense"].attrs["weight_names"] = np.array([b"n" * 1000] * 60)
        for i in range(1000):
            group[f"d{i}"] = group["dense"]
        group.attrs["layer_names"] = np.array([f"d{i}".encode() for i in range(1000)])
    with memory_below(LIMIT), pytest.raises(BadFileError, match=r"a\.h5: .*expected less data"):
        network().load_weights(path)
