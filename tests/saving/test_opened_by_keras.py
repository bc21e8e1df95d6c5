"""`.keras` files of ours that hold operators, slices and scalars: Keras opens them, and computes the same."""

import json
import zipfile

import numpy as np
import pytest

import pydtconv
from pydtconv import applications, layers, ops
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


def _of_integers(x):
    y = ops.clip(ops.abs(x - 3) * 2, 1, 7) + ops.maximum(x, 2) - ops.bitwise_and(x, np.array(5)) + ops.square(x)
    return ops.cast(ops.concatenate([ops.diff(y, axis=2), ops.transpose(y, (0, 2, 1, 3))], 2), "float32")


FUNCTIONS = {
    "arithmetic": lambda x: (1 - x * 2 + x) / 3 - (-x) ** 2 + 0.5 / (x * x + 1) + ops.maximum(x, 0.5),
    "slices": lambda x: x[:, 1:3] + x[:, -2:, :1] + x[:, 0:1, ..., 2:] + x[:, ::3],
    "shapes": lambda x: ops.concatenate([ops.reshape(x, (-1, 8, 6)), ops.zeros_like(ops.reshape(x, (-1, 8, 6)))], 1),
    "transposes": lambda x: ops.squeeze(ops.swapaxes(x, 1, 3)[:, :1], 1),
    "reductions": lambda x: (
        ops.sum(x, 1) + ops.mean(x, (1,)) + ops.max(x, -1, keepdims=True)[:, 0] + ops.min(x, axis=2)
    ),
    "padding": lambda x: (
        ops.pad(x, ((0, 0), (1, 2), (0, 0), (0, 0))) + ops.pad(x, ((0, 0), (2, 1), (0, 0), (0, 0)), "reflect")
    ),
    "products": lambda x: ops.matmul(x, ops.transpose(x, (0, 1, 3, 2))) + ops.einsum("nijc,njkc->nijk", x, x)[..., :4],
    "pooling": lambda x: (
        ops.max_pool(x, 2, padding="same") + ops.max_pool(x, 3, 2, ((1, 1), (1, 1))) + ops.average_pool(x, 2)
    ),
    "more": lambda x: (
        ops.cbrt(x) + ops.divide_no_nan(x, x) + ops.fmax(x, 0.2) + ops.flipud(x) + ops.logaddexp2(x, x) + ops.erfc(x)
    ),
    "integers": lambda x: _of_integers(ops.cast(ops.round(x * 9), "int32")),
    "pairs": lambda x: ops.irfft(ops.rfft(x), 3) + ops.fft2(ops.ifft2((x, x)))[1],
    "windows": lambda x: ops.istft(ops.stft(ops.reshape(x, (-1, 48)), 6, 3, 8), 6, 3, 8),
    "activations": lambda x: (
        ops.gelu(ops.elu(ops.leaky_relu(x, 0.1), 0.7), False)
        + ops.clip(ops.softmax(x, 1), 0.1, 0.3)
        + ops.selu(x)
        + ops.sigmoid(ops.relu6(x))
    ),
    "choices": lambda x: ops.where(x > 0, x, 0.0) + ops.cast(ops.logical_and(x > 0.5, x < 1), "float32"),
    "rows": lambda x: (
        ops.flip(x, 1)
        + ops.tile(x[:, :1], (1, 4, 1, 1))
        + ops.cumsum(x, 2)
        + ops.sort(x, 1)
        + ops.take(x, np.array([3, 0, 1, 2]), 1)
    ),
    "one_hot": lambda x: ops.one_hot(ops.argmax(x, -1), 3) + ops.sin(x) + ops.erf(x) + ops.log1p(ops.abs(x)),
    "resizing": lambda x: ops.image.resize(x, (6, 5)) + ops.image.resize(x, (6, 5), "nearest"),
    "resizing of channels first": lambda x: ops.image.resize(x, (6, 5), data_format="channels_first"),
    "resizing by cubics": lambda x: ops.image.resize(x, (8, 8), "bicubic", antialias=True),
    "patches": lambda x: ops.image.extract_patches(x, 2),
    "patches that overlap": lambda x: ops.image.extract_patches(x, (2, 3), strides=1, padding="same"),
    "normalization with weights": lambda x: ops.layer_normalization(
        x, np.arange(3, dtype="float32"), np.ones(3, "float32")
    ),
    "filled": lambda x: ops.full_like(x, 3.0) + x,
    "constants": lambda x: x + np.arange(3, dtype="float32") * 2,
}


def check(model, path, *shapes):
    keras = import_keras()
    model.save(path)
    theirs = keras.saving.load_model(path, compile=False)
    ours = pydtconv.saving.load_model(path)
    x = [np.random.default_rng(0).random((2, *shape), np.float32) for shape in shapes]
    x = x[0] if len(x) == 1 else x
    expected = model.predict(x, verbose=0)
    np.testing.assert_allclose(theirs.predict(x, verbose=0), expected, atol=1e-5, rtol=1e-4)
    np.testing.assert_array_equal(ours.predict(x, verbose=0), expected)
    assert ours.output_names == model.output_names


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators(name, tmp_path):
    inputs = pydtconv.Input((4, 4, 3))
    check(pydtconv.Model(inputs, FUNCTIONS[name](inputs)), tmp_path / "net.keras", (4, 4, 3))


def test_the_readme(tmp_path):
    inputs = pydtconv.Input(shape=(8, 8, 1))
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(inputs)
    y = layers.Conv2D(32, 3, padding="same")(x)
    x = layers.ReLU()(layers.BatchNormalization(momentum=0.9)(y) + x)
    outputs = layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling2D()(x))
    model = pydtconv.Model(inputs, outputs)
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    rng = np.random.default_rng(0)
    model.fit(rng.random((8, 8, 8, 1), np.float32), rng.integers(0, 10, 8), epochs=1, verbose=0)
    check(model, tmp_path / "net.keras", (8, 8, 1))
    theirs = import_keras().saving.load_model(tmp_path / "net.keras")
    assert theirs.optimizer.iterations == 1
    for ours, other in zip(model.optimizer.variables, theirs.optimizer.variables, strict=True):
        np.testing.assert_allclose(ours.value, np.asarray(other.value.detach()), atol=1e-7)


#: a member of each family that has operators of its own, and rows and columns of its images
NETWORKS = {
    "ConvNeXtTiny": 32,
    "GoogLeNet": 64,
    "InceptionResNetV2": 75,
    "MobileNetV3Small": 32,
    "ResNet18": 64,
    "ResNet20": 32,
    "SmallDenseNet121": 64,
    "UNet": 32,
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "ResNet20" else pytest.mark.slow) for name in NETWORKS]
)
def test_networks(name, tmp_path):
    shape = (NETWORKS[name], NETWORKS[name], 3)
    model = getattr(applications, name)(weights=None, input_shape=shape, classes=5)
    check(model, tmp_path / "net.keras", shape)


def test_what_keras_has_no_operation_for_stays_ours(tmp_path):
    inputs = pydtconv.Input((3,))
    model = pydtconv.Model(inputs, ops.affine(inputs, 2.0, 3.0))
    model.save(tmp_path / "net.keras")
    with zipfile.ZipFile(tmp_path / "net.keras") as archive:
        (operation,) = [x for x in json.loads(archive.read("config.json"))["config"]["layers"] if x["inbound_nodes"]]
    assert operation["module"] == "pydtconv.ops"
    again = pydtconv.saving.load_model(tmp_path / "net.keras")
    np.testing.assert_array_equal(again.predict(np.ones((1, 3)), verbose=0), [[5, 5, 5]])


def test_frozen_layers_stay_frozen(tmp_path):
    inputs = pydtconv.Input((3,))
    frozen = layers.Dense(4, name="frozen")
    frozen.trainable = False
    model = pydtconv.Model(inputs, layers.Dense(2)(frozen(inputs)))
    model.save(tmp_path / "net.keras")
    for load in (import_keras().saving.load_model, pydtconv.saving.load_model):
        again = load(tmp_path / "net.keras")
        assert [layer.trainable for layer in again.layers[1:]] == [False, True]
        assert again.trainable
    model.trainable = False
    model.save(tmp_path / "net.keras")
    again = pydtconv.saving.load_model(tmp_path / "net.keras")
    assert (again.trainable, again.trainable_variables) == (False, [])


def test_sparsemax_is_keras_operation(tmp_path):
    keras = import_keras()
    x = pydtconv.Input((5,))
    model = pydtconv.Model(x, ops.sparsemax(x))
    model.save(tmp_path / "a.keras")
    theirs = keras.saving.load_model(tmp_path / "a.keras")  # whose values PyTorch's Keras gets wrong
    assert type(theirs.operations[-1]).__name__ == "Sparsemax"
    data = np.random.default_rng(0).normal(size=(3, 5)).astype("float32")
    again = pydtconv.saving.load_model(tmp_path / "a.keras")
    np.testing.assert_array_equal(again.predict(data, verbose=0), model.predict(data, verbose=0))
