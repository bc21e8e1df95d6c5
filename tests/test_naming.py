"""Names from files do nothing to a terminal: whatever shows them shows escapes, and objects do not take such names."""

import json
import struct
import zipfile

import h5py
import numpy as np
import pytest

from pydtconv import Input, KerasTensor, Sequential, Variable, layers, losses, metrics, optimizers, saving
from pydtconv.files.reading import BadFileError
from pydtconv.interchange.safetensors import read_safetensors
from pydtconv.naming import printable
from pydtconv.support.messages import tell
from pydtconv.utils import Progbar
from tests.saving.test_bad_files import rewritten

#: clears the screen, sets a title, begins the line anew, turns the order of what follows
EVIL = "a\x1b[2J\x1b]0;b\x07\r\x9bc\u202ed"


def is_clean(text):
    return bool(text) and not set(text) & set("\x1b\x07\r\x9b\u202e")


def test_escapes():
    assert printable(EVIL + "\n\té") == r"a\x1b[2J\x1b]0;b\x07\r\x9bc\u202ed" + "\n\té"


CLASSES = {
    "layer": layers.Dense,
    "model": Sequential,
    "metric": metrics.Mean,
    "loss": losses.Huber,
    "optimizer": optimizers.SGD,
    "input": lambda name, **_: Input((3,), name=name),
    "tensor": lambda name, **_: KerasTensor((3,), name=name),
    "variable": lambda name, **_: Variable(1.0, name=name),
}


@pytest.mark.parametrize("make", CLASSES.values(), ids=CLASSES)
def test_objects_do_not_take_such_a_name(make):
    arguments = {"units": 2} if make is layers.Dense else {}
    with pytest.raises(ValueError, match="name: expected a text without control characters") as error:
        make(name=EVIL, **arguments)
    assert is_clean(str(error.value))


@pytest.mark.parametrize("name", ["first", "second", "third", "fourth", "net", "Dense", "relu", "float32"])
def test_configs(name, tmp_path):
    """A model's config in which a name, or the name of a class, is another."""
    path = tmp_path / "a.keras"
    model = Sequential(
        [Input((3,)), layers.Dense(2, activation="relu", name="first"), layers.ReLU(name="second")], name="net"
    )
    model.compile(optimizers.Adam(name="third"), losses.MeanSquaredError(name="fourth"))
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        assert f'"{name}"' in archive.read("config.json").decode()
    rewritten(path, lambda config: json.loads(json.dumps(config).replace(f'"{name}"', json.dumps(EVIL))))
    with pytest.raises(BadFileError) as error:
        saving.load_model(path)
    assert is_clean(str(error.value))


def weights_with_groups(path):
    with h5py.File(path, "w") as file:
        file.create_group(f"{EVIL}/vars")["0"] = np.ones(1)
        file[f"{EVIL}/vars"].attrs["name"] = "first"


def test_what_the_editor_prints(tmp_path, capsys):
    weights_with_groups(tmp_path / "a.weights.h5")
    editor = saving.KerasFileEditor(tmp_path / "a.weights.h5")
    editor.summary()
    editor.compare(Sequential([Input((3,)), layers.Dense(2)]))
    assert is_clean(capsys.readouterr().out)


def safetensors(path):
    header = json.dumps({EVIL: {"dtype": EVIL, "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))


def link(path):
    with h5py.File(path, "w") as file:
        file["layers/dense/vars"] = h5py.SoftLink(f"/{EVIL}")


def onnx_file(path):
    onnx = pytest.importorskip("onnx", reason="needs onnx")
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [1, 3]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"], name=EVIL, **{EVIL: 1})], "g", [x], [y])
    path.write_bytes(onnx.helper.make_model(graph).SerializeToString())


def load(path):
    Sequential([Input((3,)), layers.Dense(2)]).load_weights(path)


FILES = {
    "net.safetensors": (safetensors, read_safetensors),
    "net.weights.h5": (link, load),
    "net.onnx": (onnx_file, saving.load_onnx),
}


@pytest.mark.parametrize(("name", "write", "read"), [(name, *pair) for name, pair in FILES.items()], ids=FILES)
def test_errors_of_files(name, write, read, tmp_path):
    write(tmp_path / name)
    with pytest.raises(ValueError, match=r"expected|not supported") as error:
        read(tmp_path / name)
    assert is_clean(str(error.value))


def test_messages_and_progress(capsys):
    tell(EVIL)
    Progbar(1, verbose=2).update(1, [(EVIL, 1.0)])
    assert is_clean(capsys.readouterr().out)
