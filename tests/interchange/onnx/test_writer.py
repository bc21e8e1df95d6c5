"""In which layout an ONNX file has its tensors."""

import pydtconv as keras
from pydtconv import layers
from tests.interchange.onnx_sessions import check, onnx


def test_channels_first_needs_no_transposes_of_its_own(tmp_path):
    x = inputs = keras.Input((3, 8, 8))
    for _ in range(2):
        x = layers.Conv2D(4, 3, padding="same", data_format="channels_first")(x)
        x = layers.ReLU()(layers.BatchNormalization(axis=1)(x))
    model = keras.Model(inputs, layers.GlobalAveragePooling2D(data_format="channels_first")(x))
    check(model, tmp_path / "net.onnx", (3, 8, 8))
    kinds = [node.op_type for node in onnx.load(str(tmp_path / "net.onnx")).graph.node]
    assert kinds.count("Transpose") == 0, kinds
