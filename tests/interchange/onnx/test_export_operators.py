"""Operators of layers as ONNX nodes, run by onnxruntime: each row of the file."""

import pydtconv as keras
from pydtconv import layers, ops
from pydtconv.graph import Graph
from pydtconv.interchange.onnx import export_operators, export_table
from pydtconv.ops.base import Spec
from tests.interchange.onnx_sessions import check


def rows_of(module):
    """The operators that a module writes."""
    return {op for op, function in export_table.ROWS.items() if function.__module__ == module.__name__}


def operators_of(model, *shapes):
    with Graph(training=False) as graph:
        model([graph.input(f"x{i}", Spec((2, *shape), "float32")) for i, shape in enumerate(shapes)], training=False)
    return {type(node.op) for node in graph.nodes}


def test_each_operator(tmp_path):
    image, tokens = keras.Input((6, 6, 4)), keras.Input((5, 8))
    x = layers.Conv2D(4, 3, padding="same", activation="relu")(image)
    x = layers.DepthwiseConv2D(3, strides=2)(x)
    x = layers.BatchNormalization()(layers.Conv2DTranspose(4, 3, strides=2)(x))
    x = layers.Activation("elu")(layers.Add()([x, x]))
    y = layers.LayerNormalization()(layers.Dense(8, activation="tanh")(tokens))
    y = layers.MultiHeadAttention(2, 4)(y, y) + layers.Embedding(7, 8)(ops.cast(tokens[:, :, 0] > 0, "int32"))
    product = ops.einsum("nij,nkj->nik", y, y)
    kernel = keras.Variable([[1.0] * 3] * 8)
    results = [
        x,
        y,
        layers.LSTM(2)(tokens),
        ops.matmul(y, kernel),
        ops.softmax(product),
        ops.log_softmax(product),
        ops.matmul(product, y),
    ]
    model = keras.Model([image, tokens], results)
    assert rows_of(export_operators) - operators_of(model, (6, 6, 4), (5, 8)) == set()
    check(model, tmp_path / "net.onnx", (6, 6, 4), (5, 8))
