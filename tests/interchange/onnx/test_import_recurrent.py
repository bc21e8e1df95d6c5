"""Recurrent layers to ONNX and back, beside onnxruntime; files of PyTorch."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, saving
from tests.interchange.onnx_sessions import check, run


def network():
    x = pydtconv.Input((5, 3))
    y = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x)
    y = layers.GRU(4, activation="softsign", return_sequences=True, go_backwards=True)(y)
    y, h = layers.GRU(3, return_state=True, return_sequences=True, reset_after=False)(y)
    state = layers.Dense(3)(h)
    z = layers.SimpleRNN(3, activation="relu")(y, initial_state=state)
    h, *states = layers.LSTM(3, use_bias=False, return_state=True)(y, initial_state=[state, h])
    return pydtconv.Model(x, [z, h, *states])


def test_to_onnx_and_back(tmp_path):
    model = network()
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(size=w.shape) / 2 for w in model.weights])
    check(model, tmp_path / "net.onnx", (5, 3))
    plain = pydtconv.Sequential(
        [
            pydtconv.Input((5, 3)),
            layers.Bidirectional(layers.GRU(4, return_sequences=True)),
            layers.LSTM(3, go_backwards=True),
        ]
    )
    check(plain, tmp_path / "plain.onnx", (5, 3))
    again = saving.load_onnx(tmp_path / "plain.onnx")
    x = rng.normal(size=(4, 5, 3)).astype("float32")
    np.testing.assert_allclose(again.predict(x, verbose=0), plain.predict(x, verbose=0), atol=1e-5)
    again.compile("adam", "mse")
    first, *_, last = again.fit(x, np.ones((4, 3)), epochs=5, verbose=0).history["loss"]
    assert last < first


@pytest.mark.parametrize(
    "make",
    [
        lambda: [layers.Masking(), layers.Bidirectional(layers.LSTM(2, return_sequences=True)), layers.GRU(2)],
        lambda: [layers.SimpleRNN(2, activation=None), layers.Dense(1)],
        lambda: [layers.GRU(2, recurrent_activation="hard_sigmoid", go_backwards=True)],
    ],
)
def test_steps_of_masked_layers_and_other_activations(make, tmp_path):
    check(pydtconv.Sequential([pydtconv.Input((5, 3)), *make()]), tmp_path / "net.onnx", (5, 3))


@pytest.mark.parametrize(
    ("kind", "gates", "attributes"),
    [
        ("LSTM", 4, {"direction": "bidirectional"}),
        ("GRU", 3, {"direction": "reverse"}),
        ("GRU", 3, {"linear_before_reset": 1, "activations": ["Sigmoid", "Softsign"]}),
        ("RNN", 1, {"activations": ["Relu"]}),
    ],
)
def test_files_of_others(kind, gates, attributes, tmp_path):
    onnx = pytest.importorskip("onnx", reason="needs onnx")
    helper, rng = onnx.helper, np.random.default_rng(1)
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    shapes = {"W": (directions, gates * 4, 3), "R": (directions, gates * 4, 4), "B": (directions, gates * 8)}
    arrays = [onnx.numpy_helper.from_array(rng.normal(size=s).astype("float32"), n) for n, s in shapes.items()]
    names = ["Y", "Y_h", "Y_c"][: 3 if kind == "LSTM" else 2]
    nodes = [
        helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
        helper.make_node(kind, ["steps", *shapes], names, hidden_size=4, **attributes),
        helper.make_node("Transpose", ["Y"], ["y"], perm=[2, 0, 1, 3]),
        helper.make_node("ReduceSum", ["Y_h", "first"], ["h"], keepdims=0),
    ]
    arrays.append(onnx.numpy_helper.from_array(np.array([0]), "first"))
    info = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", ["n", 5, 3]), ("y", None), ("h", None))]
    graph = helper.make_graph(nodes, "g", info[:1], info[1:], arrays)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, str(tmp_path / "net.onnx"))
    x = rng.normal(size=(2, 5, 3)).astype("float32")
    model = saving.load_onnx(tmp_path / "net.onnx")
    for found, expected in zip(model.predict(x, verbose=0), run(tmp_path / "net.onnx", x), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
