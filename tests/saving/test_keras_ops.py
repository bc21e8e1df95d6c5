"""Functional models of Keras that hold single operations: their arguments are read, what is unknown is refused."""

import json
import zipfile

import numpy as np
import pytest

from pydtconv import saving
from pydtconv.models import Functional
from tests.real_keras import import_keras

# of NumPy about PyTorch's arrays
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

X = np.random.default_rng(0).standard_normal((2, 4, 4, 3)).astype("float32")


def node_of(shape):
    history = {"shape": list(shape), "dtype": "float32", "keras_history": ["x", 0, 0]}
    return {"class_name": "__keras_tensor__", "config": history}


def model_of(class_name, config, *more):
    """A model of one operation, as a file of Keras describes it."""
    shape = (None, *X.shape[1:])
    source = {"batch_shape": list(shape), "dtype": "float32", "name": "x"}
    layers = [
        {"module": "keras.layers", "class_name": "InputLayer", "config": source, "name": "x", "inbound_nodes": []},
        {
            "module": "keras.src.ops.any",
            "class_name": class_name,
            "config": {"name": "op", **config},
            "name": "op",
            "inbound_nodes": [{"args": [node_of(shape), *more], "kwargs": {}}],
        },
    ]
    config = {"name": "m", "layers": layers, "input_layers": ["x", 0, 0], "output_layers": ["op", 0, 0]}
    return Functional.from_config(json.loads(json.dumps(config)))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize(
    ("class_name", "config", "expected"),
    [
        ("Softmax", {"axis": 1}, softmax(X, 1)),
        ("LeakyRelu", {"negative_slope": 0.3}, np.where(X > 0, X, 0.3 * X)),
        ("Elu", {"alpha": 0.5}, np.where(X > 0, X, 0.5 * np.expm1(X))),
        ("Max", {"axis": 1, "keepdims": True, "initial": None}, X.max(1, keepdims=True)),
        ("Mean", {"axis": [1, 2], "keepdims": True}, X.mean((1, 2), keepdims=True)),
        ("Clip", {"x_min": -0.5, "x_max": 0.5}, X.clip(-0.5, 0.5)),
        (
            "Pad",
            {"pad_width": [[0, 0], [1, 2], [0, 0], [0, 0]], "mode": "constant"},
            np.pad(X, [(0, 0), (1, 2), (0, 0), (0, 0)]),
        ),
        ("Reshape", {"newshape": [-1, 16, 3]}, X.reshape(-1, 16, 3)),
        ("ExpandDims", {"axis": 1}, X[:, None]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arguments_are_in_the_config(class_name, config, expected):
    y = model_of(class_name, config).predict(X, verbose=0)
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, atol=1e-6)


def test_slices_are_read():
    part = {"class_name": "__slice__", "config": {"start": 1, "stop": 3, "step": None}}
    whole = {"class_name": "__slice__", "config": {"start": None, "stop": None, "step": None}}
    np.testing.assert_array_equal(model_of("GetItem", {}, [whole, part, 0]).predict(X, verbose=0), X[:, 1:3, 0])


@pytest.mark.parametrize(
    ("class_name", "config", "told"),
    [
        ("Mean", {"axis": 1, "initial": 0.5}, "initial=0.5"),
        ("Logsumexpm", {"axis": 1}, r"keras\.ops\.logsumexpm"),
        ("Clip", {}, "not known here.*x_min"),
        ("MaxPool2D", {}, "does not have"),
    ],
)
def test_what_is_unknown_is_refused(class_name, config, told):
    with pytest.raises(ValueError, match=told):
        model_of(class_name, config)


OPERATIONS = {
    "softmax": lambda o, x: o.softmax(x, axis=1),
    "gelu": lambda o, x: o.gelu(x, approximate=False),
    "mean": lambda o, x: o.mean(x, axis=(1, 2), keepdims=True),
    "pad": lambda o, x: o.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="reflect"),
    "pad_values": lambda o, x: o.pad(x, ((0, 0), (1, 2), (0, 0), (0, 0)), constant_values=2.0),
    "transpose": lambda o, x: o.transpose(x, (0, 3, 1, 2)),
    "stack": lambda o, x: o.stack([x, x], axis=1),
    "slice": lambda o, x: x[:, 1:3, 0],
    "divide": lambda o, x: x / 3.0,
    "max_pool": lambda o, x: o.max_pool(x, 2, 1, "same"),
    "split": lambda o, x: o.split(x, 2, axis=1)[1],
    "threshold": lambda o, x: o.threshold(x, 0.1, 0.3),
    "argmax": lambda o, x: o.cast(o.argmax(x, axis=-1), "float32"),
    "expand_dims": lambda o, x: o.expand_dims(x, (1, -1)),
    "layer_normalization": lambda o, x: o.layer_normalization(x, axis=-1),
    "resize": lambda o, x: o.image.resize(x, (7, 5), interpolation="bicubic", antialias=True),
    "crop_images": lambda o, x: o.image.crop_images(x, 1, 0, 1, 2),
    "pad_images": lambda o, x: o.image.pad_images(x, 1, 0, 1, 2),
    "extract_patches": lambda o, x: o.image.extract_patches(x, 2, strides=2),
    "rgb_to_grayscale": lambda o, x: o.image.rgb_to_grayscale(x),
    "isin": lambda o, x: o.cast(o.isin(o.round(x), np.array([0.0, 1.0], "float32")), "float32"),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_file_of_keras_computes_what_it_did(operation, tmp_path):
    keras = import_keras()
    inputs = keras.Input(X.shape[1:])
    model = keras.Model(inputs, operation(keras.ops, inputs))
    model.save(tmp_path / "m.keras")
    expected = keras.ops.convert_to_numpy(model(X))
    np.testing.assert_allclose(
        saving.load_model(tmp_path / "m.keras").predict(X, verbose=0), expected, rtol=1e-4, atol=1e-5
    )


def test_layer_normalization_of_keras(tmp_path):
    keras = import_keras()
    model = keras.Sequential([keras.Input(X.shape[1:]), keras.layers.LayerNormalization()])
    model.save(tmp_path / "m.keras")
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        assert b"rms_scaling" in archive.read("config.json")
    saving.load_model(tmp_path / "m.keras")
