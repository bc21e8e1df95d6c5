"""ONNX files as others write them."""

import numpy as np
import pytest

from pydtconv import saving

onnx = pytest.importorskip("onnx", reason="needs onnx")
reference = pytest.importorskip("onnx.reference", reason="needs onnx")


def made(nodes, constants=(), shape=("n", 4), opset=18):
    make = onnx.helper
    graph = make.make_graph(
        nodes,
        "g",
        [make.make_tensor_value_info("x", 1, shape)],
        [make.make_tensor_value_info("y", 1, None)],
        list(constants),
    )
    return make.make_model(graph, opset_imports=[make.make_opsetid("", opset)])


def node(kind, inputs=("x",), **attributes):
    return onnx.helper.make_node(kind, list(inputs), ["y"], name="the_node", **attributes)


def vector(name, values):
    return onnx.numpy_helper.from_array(np.asarray(values), name)


def loaded_and_expected(path, kind, constants, x, opset=13, **attributes):
    """What the loaded network gives, and ONNX's own evaluation of a node that means the same in version 13."""
    inputs = ["x", *constants]
    vectors = [vector(name, values) for name, values in constants.items()]
    path.write_bytes(made([node(kind, inputs, **attributes)], vectors, x.shape, opset).SerializeToString())
    found = saving.load_onnx(path).predict(x, verbose=0)
    for name in ("is_test", "broadcast", "axis", "consumed_inputs"):
        attributes.pop(name, None)
    new = made([node(kind, inputs, **attributes)], vectors, x.shape, 13)
    return found, lambda: reference.ReferenceEvaluator(new).run(None, {"x": x})[0]


def inner(kind, inputs, outputs, **attributes):
    return onnx.helper.make_node(kind, inputs, outputs, **attributes)


def load(tmp_path, *arguments, **options):
    path = tmp_path / "net.onnx"
    path.write_bytes(made(*arguments, **options).SerializeToString())
    return saving.load_onnx(path)


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")
