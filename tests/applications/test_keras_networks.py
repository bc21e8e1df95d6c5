"""`keras.applications`: arguments, layer names, numbers of parameters and outputs from the same weights."""

import inspect
import json
import warnings

import numpy as np
import pytest

import pydtconv
from pydtconv import applications, config, layers, utils
from tests.marks import slow
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

#: a member of each family, and rows and columns of its images
FAMILIES = {
    "ConvNeXtTiny": 32,
    "DenseNet121": 32,
    "EfficientNetB0": 32,
    "EfficientNetV2B0": 32,
    "InceptionResNetV2": 75,
    "InceptionV3": 75,
    "MobileNet": 32,
    "MobileNetV2": 32,
    "MobileNetV3Small": 32,
    "NASNetMobile": 32,
    "ResNet50": 32,
    "ResNet50V2": 32,
    "VGG16": 32,
    "VGG19": 32,
    "Xception": 71,
}
#: parameters with 1000 classes, as Keras's page lists them
PARAMETERS = {
    "DenseNet121": 8_062_504,
    "EfficientNetB0": 5_330_571,
    "MobileNet": 4_253_864,
    "MobileNetV2": 3_538_984,
    "NASNetMobile": 5_326_716,
    "ResNet50": 25_636_712,
    "VGG16": 138_357_544,
}
MODULES = [*applications.KERAS, "resnet50", "imagenet_utils"]


def names_of(model):
    return [layer.name for layer in model.layers]


def both(name, size, **options):
    """The network of Keras and ours, with the same weights."""
    keras = import_keras()
    keras.utils.clear_session(free_memory=False)
    utils.clear_session(free_memory=False)
    options = {"weights": None, "input_shape": (size, size, 3), **options}
    theirs = getattr(keras.applications, name)
    if name == "NASNetMobile":  # Keras refuses it on PyTorch, where 7x7 of 75 groups was slow
        theirs = inspect.unwrap(keras.src.applications.nasnet.NASNet)
        options = {**options, "default_size": 224}
        nasnet = (options["input_shape"], 1056, 4, 32, False, 2)
        theirs = theirs(*nasnet, **{k: v for k, v in options.items() if k != "input_shape"}, name="nasnet_mobile")
        del options["default_size"]
    else:
        theirs = theirs(**options)
    ours = getattr(applications, name)(**options)
    rng = np.random.default_rng(0)
    weights = [
        w + rng.uniform(0, 0.2, w.shape).astype(w.dtype) if w.dtype.kind == "f" and w.ndim == 1 else w
        for w in theirs.get_weights()
    ]
    theirs.set_weights(weights)
    assert [w.shape for w in ours.get_weights()] == [w.shape for w in weights]
    ours.set_weights(weights)
    return theirs, ours


@pytest.mark.parametrize(
    ("name", "parameters", "layers"),
    [
        ("EfficientNetB0", 4_058_538, 240),
        ("EfficientNetV2B0", 5_928_279, 273),
        slow("InceptionV3", 21_817_127, 313),
        ("MobileNetV3Small", 1_537_143, 164),
        slow("NASNetMobile", 4_277_115, 771),
        slow("Xception", 20_875_823, 134),
    ],
)
def test_parameters_and_layers_with_7_classes(name, parameters, layers):
    size = FAMILIES[name]
    model = getattr(applications, name)(weights=None, input_shape=(size, size, 3), classes=7)
    assert (model.count_params(), len(model.layers)) == (parameters, layers)


@pytest.mark.parametrize(
    ("name", "size"),
    [pytest.param(*row, marks=pytest.mark.slow) for row in FAMILIES.items()],
)
def test_layers_and_outputs_are_keras(name, size):
    theirs, ours = both(name, size, classes=7)
    assert names_of(ours) == names_of(theirs)
    assert ours.count_params() == theirs.count_params()
    assert ours.name == theirs.name
    x = np.random.default_rng(1).random((2, size, size, 3), np.float32)
    np.testing.assert_allclose(ours.predict(x, verbose=0), theirs.predict(x, verbose=0), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        slow("MobileNet", {"pooling": "avg", "alpha": 0.25, "depth_multiplier": 2}),
        pytest.param(
            "MobileNetV3Large",
            {"pooling": "max", "alpha": 0.75, "minimalistic": True, "include_preprocessing": False},
            marks=pytest.mark.slow,
        ),
        pytest.param("ResNet50", {"pooling": None}, marks=pytest.mark.slow),
    ],
)
def test_without_a_top(name, options):
    theirs, ours = both(name, 32, include_top=False, **options)
    assert (names_of(ours), ours.output_shape) == (names_of(theirs), theirs.output_shape)
    x = np.random.default_rng(1).random((2, 32, 32, 3), np.float32)
    np.testing.assert_allclose(ours.predict(x, verbose=0), theirs.predict(x, verbose=0), atol=1e-4, rtol=1e-4)


def test_none_of_kerass_networks_is_missing():
    keras = import_keras()
    assert {name for name in dir(keras.applications) if name[0].isupper()} <= set(applications.__all__)
    for name in MODULES:
        ours, theirs = getattr(applications, name), getattr(keras.applications, name)
        assert {n for n in dir(theirs) if not n.startswith("_")} <= set(ours.__all__)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in PARAMETERS])
def test_parameters_with_1000_classes(name):
    assert getattr(applications, name)(weights=None).count_params() == PARAMETERS[name]


@pytest.mark.slow
def test_channels_first():
    config.set_image_data_format("channels_first")
    try:
        first = applications.MobileNetV2(weights=None, input_shape=(3, 32, 32), classes=3, alpha=0.35)
    finally:
        config.set_image_data_format("channels_last")
    last = applications.MobileNetV2(weights=None, input_shape=(32, 32, 3), classes=3, alpha=0.35)
    last.set_weights(first.get_weights())
    x = np.random.default_rng(1).random((2, 32, 32, 3), np.float32)
    expected = last.predict(x, verbose=0)
    np.testing.assert_allclose(first.predict(x.transpose(0, 3, 1, 2), verbose=0), expected, atol=1e-5)


def test_images_of_any_size():
    model = applications.MobileNet(weights=None, include_top=False, alpha=0.25)
    assert model.output_shape == (None, None, None, 256)
    for size in (32, 63):
        assert model.predict(np.zeros((1, size, size, 3)), verbose=0).shape == (
            1,
            (size + 31) // 32,
            (size + 31) // 32,
            256,
        )


def test_an_input_tensor_with_layers_before_it():
    images = pydtconv.Input((32, 32, 1))
    x = layers.Conv2D(3, 1)(images)
    model = applications.MobileNet(weights=None, input_tensor=x, alpha=0.25, classes=4)
    assert model.inputs[0] is images
    assert model.predict(np.zeros((2, 32, 32, 1)), verbose=0).shape == (2, 4)


def test_logits_without_an_activation():
    model = applications.MobileNetV2(None, 0.35, weights=None, classes=2, classifier_activation=None)
    assert model.layers[-1].activation.__name__ == "linear"


def test_weights_of_a_file(tmp_path):
    path = tmp_path / "net.weights.h5"
    model = applications.MobileNet(weights=None, alpha=0.25, classes=3, input_shape=(32, 32, 3))
    model.save_weights(path)
    again = applications.MobileNet(weights=path, alpha=0.25, classes=3, input_shape=(32, 32, 3))
    for ours, other in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "imagenet"}, r"vgg16: weights: .* got 'imagenet': there are no pretrained weights"),
        ({"weights": "no such file"}, r"vgg16: weights: expected None or the path of a file, got 'no such file'"),
        ({"input_shape": (16, 16, 3)}, r"vgg16: input_shape: expected at least 32x32 pixels, got \(16, 16, 3\)"),
        ({"input_shape": (None, None, 3)}, r"vgg16: input_shape: expected known extents with include_top=True"),
        ({"input_shape": (32, 32)}, r"vgg16: input_shape: expected three integers, got \(32, 32\)"),
        ({"pooling": "mean"}, r"vgg16: pooling: expected None, 'avg' or 'max', got 'mean'"),
        ({"input_tensor": np.zeros((1, 32, 32, 3))}, r"vgg16: input_tensor: expected a symbolic tensor"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        applications.VGG16(**{"weights": None, **options})


@pytest.mark.parametrize("name", MODULES)
def test_preprocess_input(name):
    theirs = getattr(import_keras().applications, name).preprocess_input
    ours = getattr(applications, name).preprocess_input
    rng = np.random.default_rng(0)
    for x in (rng.uniform(0, 255, (2, 4, 5, 3)).astype("float32"), rng.integers(0, 256, (4, 5, 3), np.uint8)):
        np.testing.assert_allclose(ours(x.copy()), theirs(x.copy()), rtol=1e-5, atol=1e-5)
        first = np.ascontiguousarray(np.moveaxis(x, -1, -3))
        expected = theirs(first.copy(), data_format="channels_first")
        np.testing.assert_allclose(ours(first.copy(), data_format="channels_first"), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["caffe", "tf", "torch"])
def test_preprocess_input_in_a_model(mode):
    preprocess = applications.imagenet_utils.preprocess_input
    inputs = pydtconv.Input((4, 5, 3))
    model = pydtconv.Model(inputs, preprocess(inputs, mode=mode))
    x = np.random.default_rng(0).uniform(0, 255, (2, 4, 5, 3)).astype("float32")
    expected = preprocess(x.copy(), mode=mode)
    np.testing.assert_allclose(model.predict(x, verbose=0), expected, rtol=1e-5, atol=1e-4)


def test_decode_predictions(tmp_path, monkeypatch):
    path = tmp_path / "index.json"
    path.write_text(json.dumps({str(i): [f"n{i}", f"thing {i}"] for i in range(1000)}))
    monkeypatch.setattr(utils, "get_file", lambda *args, **kwargs: str(path))
    applications.imagenet_utils._class_index.cache_clear()
    scores = np.zeros((2, 1000))
    scores[0, [5, 7]], scores[1, 999] = (0.75, 0.25), 1.0
    best = applications.vgg16.decode_predictions(scores, top=2)
    assert best[0] == [("n5", "thing 5", 0.75), ("n7", "thing 7", 0.25)]
    assert best[1][0] == ("n999", "thing 999", 1.0)
    applications.imagenet_utils._class_index.cache_clear()
    with pytest.raises(ValueError, match=r"decode_predictions: preds: expected shape \(samples, 1000\), got \(2, 10\)"):
        applications.vgg16.decode_predictions(np.zeros((2, 10)))


def test_other_numbers_of_channels_warn():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        applications.MobileNet(weights=None, alpha=0.25, input_shape=(32, 32, 2), classes=2)
    assert "mobilenet_0.25_32: input_shape: expected 1 or 3 channels, got 2" in str(told[-1].message)
