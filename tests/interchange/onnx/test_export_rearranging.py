"""Pooling, reductions and what moves elements as ONNX nodes, run by onnxruntime: each row of the file."""

import pydtconv as keras
from pydtconv import layers, ops
from pydtconv.interchange.onnx import export_rearranging
from tests.interchange.onnx.test_export_operators import operators_of, rows_of
from tests.interchange.onnx_sessions import check


def test_each_operator(tmp_path):
    image = keras.Input((6, 6, 4))
    results = [
        layers.MaxPooling2D()(image),
        layers.AveragePooling2D(3, strides=2, padding="same")(image),
        layers.GlobalAveragePooling2D()(image),
        layers.GlobalMaxPooling2D()(image),
        layers.AdaptiveAveragePooling2D(3)(image),
        layers.AdaptiveMaxPooling2D(2)(image),
        *(reduce(image, axis=1) for reduce in (ops.sum, ops.mean, ops.max, ops.min)),
        ops.cast(ops.argmax(image, axis=-1), "float32"),
        layers.Concatenate()([image, image[:, :, :, 1:3]]),
        layers.CenterCrop(4, 4)(image),
        ops.RandomCrop(height=4, width=5)(image),
        layers.ZeroPadding2D(1)(image),
        layers.UpSampling2D(2)(image),
        layers.Resizing(3, 9)(image),
        layers.Permute((3, 1, 2))(layers.Reshape((6, 4, 6))(image)),
        ops.flip(image, 1),
    ]
    model = keras.Model(image, results)
    assert rows_of(export_rearranging) - operators_of(model, (6, 6, 4)) == set()
    check(model, tmp_path / "net.onnx", (6, 6, 4))
