"""`Model.export`: what onnxruntime computes from the file is what `predict` computes."""

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import applications, layers, ops
from tests.interchange.onnx_sessions import check, onnx, run
from tests.zoo import SMALLEST

#: rows and columns of networks that take no smaller ones
SIZES = SMALLEST | {"cosmoflow": 64}
#: one of each family, so that all operators of the zoo are met
FEW = ("convnexttiny", "mobilenetv3small", "resnet20", "unet", "vit")


def spread(model):
    """Vectors of weights that are not all 0 or 1, and logits that a softmax does not saturate."""
    rng = np.random.default_rng(0)
    model.set_weights([w + rng.uniform(0, 0.03, w.shape) if w.ndim == 1 else w for w in model.get_weights()])


@pytest.mark.parametrize("name", [n if n == "resnet20" else pytest.param(n, marks=pytest.mark.slow) for n in FEW])
def test_the_zoo(name, tmp_path):
    size = SIZES.get(name, 32)
    shape = {1: (128, 1), 2: (size, size, 3), 3: (size, size, size, 1)}[applications.axes(name)]
    model = applications.build(name, shape, 7)
    spread(model)
    check(model, tmp_path / "net.onnx", shape)


def test_layers_of_images(tmp_path):
    x = inputs = keras.Input((9, 8, 4))
    x = layers.Conv2D(6, 3, strides=2, padding="same", groups=2, activation="relu6")(x)
    x = layers.Conv2DTranspose(5, 3, strides=2, padding="same")(x)
    y = layers.DepthwiseConv2D(3, dilation_rate=2, depth_multiplier=2, padding="same")(x)
    y = layers.GroupNormalization(5)(layers.BatchNormalization()(y))
    y = layers.Dense(10, activation="gelu")(y) + layers.UpSampling2D((2, 1))(y[:, 1:6, :, :])
    y = layers.MaxPooling2D(3, strides=2, padding="same")(layers.ZeroPadding2D(((1, 0), (2, 3)))(y))
    y = layers.AveragePooling2D(2, padding="same")(layers.Cropping2D(1)(y))
    y = layers.Concatenate()([y, ops.max(y, -1, keepdims=True), y * ops.mean(y, (1, 2), keepdims=True)])
    outputs = [layers.Softmax(axis=(1))(y), layers.Flatten()(y), ops.sum(y, axis=-1), layers.GlobalMaxPooling2D()(y)]
    check(keras.Model(inputs, outputs), tmp_path / "net.onnx", (9, 8, 4))


def test_layers_of_tokens(tmp_path):
    a, b = keras.Input((6, 8)), keras.Input((5, 8))
    x = layers.MultiHeadAttention(2, 4)(a, b, use_causal_mask=True)
    x = layers.GroupQueryAttention(3, 4, 2)(layers.LayerNormalization(axis=(1, 2))(x), b)
    x = layers.RMSNormalization()(layers.Permute((2, 1))(x))
    x = ops.matmul(x, layers.EinsumDense("abc,cd->abd", (None, 5))(a))
    x = x + ops.einsum("bij,bjk->bik", ops.transpose(b, (0, 2, 1)), b[:, :, :5])
    check(keras.Model([a, b], layers.Reshape((-1, 2))(x)), tmp_path / "net.onnx", (6, 8), (5, 8))


def test_names_and_other_versions(tmp_path):
    a, b = keras.Input((3,), name="left"), keras.Input((3,), name="right")
    model = keras.Model(
        {"left": a, "right": b}, {"add": layers.Add(name="add")([a, b]), "out": layers.Dense(2, name="out")(b)}
    )
    model.export(tmp_path / "net.onnx", format="onnx", opset_version=21, verbose=True)
    made = onnx.load(str(tmp_path / "net.onnx"))
    assert [info.name for info in made.graph.input] == ["left", "right"]
    assert [info.name for info in made.graph.output] == model.output_names == ["add", "out"]
    assert made.opset_import[0].version == 21
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_a_subclassed_model_and_a_signature(tmp_path):
    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(3)

        def call(self, x):
            return self.dense(x) * 2

    model = Net()
    with pytest.raises(ValueError, match=r"export: the input shape of model .* is not known"):
        model.export(tmp_path / "net.onnx", format="onnx")
    x = np.ones((2, 5), "float32")
    expected = model.predict(x, verbose=0)
    model.export(tmp_path / "net.onnx", format="onnx")
    np.testing.assert_allclose(run(tmp_path / "net.onnx", x)[0], expected, rtol=1e-5)
    images = keras.Input((None, None, 3))
    free = keras.Model(images, layers.Conv2D(2, 3)(images))
    with pytest.raises(ValueError, match="known but for the batch"):
        free.export(tmp_path / "net.onnx", format="onnx")
    free.export(tmp_path / "net.onnx", format="onnx", input_signature=[layers.InputSpec(shape=(None, 6, 6, 3))])
    x = np.ones((2, 6, 6, 3), "float32")
    np.testing.assert_allclose(run(tmp_path / "net.onnx", x)[0], free.predict(x, verbose=0), rtol=1e-5)


def test_refusals(tmp_path):
    inputs = keras.Input((4, 4, 2))
    path = tmp_path / "net.onnx"
    for make, message in (
        (lambda x: ops.erfinv(x), r"the function ops.erfinv has no ONNX operator here"),
        (lambda x: layers.Dropout(0.5)(x, training=True), r"active outside of training"),
        (lambda x: ops.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "symmetric"), r"pad: .*'symmetric'"),
        (
            lambda x: layers.BatchNormalization(name="norm")(x, training=True),
            r"batch's own moments.*\(layer '.*norm'\)",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            keras.Model(inputs, make(inputs)).export(path, format="onnx")
    model = keras.Model(inputs, layers.Flatten()(inputs))
    for arguments, message in (
        ({}, "format: expected 'onnx', got 'tf_saved_model'"),
        ({"format": "onnx", "opset_version": 9}, "opset_version: expected 18 to 23, got 9"),
        ({"format": "onnx", "optimizations": 1}, "unknown arguments: 'optimizations'"),
    ):
        with pytest.raises(ValueError, match=message):
            model.export(path, **arguments)
    assert not path.exists()


def test_penalties_are_left_out(tmp_path):
    x = keras.Input((6,))
    y = layers.ActivityRegularization(l2=0.1)(layers.Dense(3, activity_regularizer="l2")(x))
    check(keras.Model(x, y), tmp_path / "net.onnx", (6,))


def test_mixed_precision(tmp_path):
    """Files have float32 throughout, with what is rounded to bfloat16 as it is."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        inputs = keras.Input((6,))
        x = layers.PReLU(alpha_initializer="uniform")(layers.Dense(4)(inputs))
        x = layers.Lambda(lambda x: x * np.arange(1.0, 5.0) + ops.ones((4,), dtype=x.dtype))(x)
        model = keras.Model(inputs, layers.Dense(3)(x))
    finally:
        keras.utils.clear_session(free_memory=False)
    check(model, tmp_path / "net.onnx", (6,), tolerance=0.05)
