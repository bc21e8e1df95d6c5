"""Every reader of weights names the variables whose values are not finite, also where only float32 makes them so."""

import json
import struct
import warnings

import h5py
import numpy as np
import pytest

from pydtconv import Input, Sequential, layers, saving
from pydtconv.interchange.named_weights import load_named_weights


def network():
    model = Sequential([Input((2,)), layers.Dense(1, name="dense")], name="net")
    model.compile("adam", "mse")
    model.train_on_batch(np.ones((1, 2)), np.ones((1, 1)))
    return model


def hdf5(path, values):
    """A file of weights, or of a model, whose first array is another."""
    (network().save if path.name != "a.weights.h5" else network().save_weights)(path)
    with h5py.File(path, "r+") as file:
        key = "layers/dense/vars/0" if path.name == "a.weights.h5" else "model_weights/dense/dense/kernel"
        del file[key]
        file[key] = values


def state(path, values):
    network().save_weights(path)
    with h5py.File(path, "r+") as file:
        del file["optimizer/vars/2"]
        file["optimizer/vars/2"] = values


def onnx_file(path, values):
    onnx = pytest.importorskip("onnx", reason="needs onnx")
    make = onnx.helper
    x, y = make.make_tensor_value_info("x", 1, [1, 2]), make.make_tensor_value_info("y", 1, [1, 1])
    nodes = [make.make_node("Gemm", ["x", "w"], ["y"], name="dense")]
    graph = make.make_graph(nodes, "g", [x], [y], [onnx.numpy_helper.from_array(values, "w")])
    path.write_bytes(make.make_model(graph).SerializeToString())


def safetensors(path, values):
    arrays = {"dense/kernel": values, "dense/bias": np.zeros(1)}
    header, data = {}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": "F64", "shape": array.shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path):
    network().load_weights(path)


FILES = {
    "a.weights.h5": (hdf5, load),
    "a.h5": (hdf5, saving.load_model),
    "state.weights.h5": (state, load),
    "a.safetensors": (safetensors, lambda path: load_named_weights(network(), path)),
    "a.onnx": (onnx_file, saving.load_onnx),
}


@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e39], ids=["nan", "infinity", "too large for float32"])
@pytest.mark.parametrize(("name", "write", "read"), [(name, *pair) for name, pair in FILES.items()], ids=FILES)
def test_values_that_are_not_finite_are_named(name, write, read, value, tmp_path):
    write(tmp_path / name, np.array([[value], [1.0]]))
    with pytest.warns(UserWarning, match=r"1 variables hold values that are not finite: .*kernel") as found:
        read(tmp_path / name)
    assert len(found) == 1
    write(tmp_path / name, np.array([[1e38], [1.0]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(tmp_path / name)
