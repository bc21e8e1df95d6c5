"""Changes of images that consist of others, or mix images: against Keras, or by what they keep."""

import json

import numpy as np
import pytest

import pydtconv
from pydtconv import layers
from pydtconv.utils import set_random_seed
from tests.real_keras import import_keras

IMAGES = np.random.default_rng(3).uniform(0, 255, (6, 9, 8, 3)).astype("float32")
LABELS = np.eye(6, dtype="float32")
DRAWN = {
    "RandomColorJitter": {"brightness_factor": 0.2, "hue_factor": 0.2, "saturation_factor": (0.4, 0.6)},
    "RandAugment": {},
    "AugMix": {"all_ops": False},
    "RandomPerspective": {},
    "RandomElasticTransform": {},
    "MixUp": {},
    "CutMix": {},
}


@pytest.mark.filterwarnings("ignore:.*Tensor.T is deprecated")
@pytest.mark.parametrize(("name", "more"), [("AutoContrast", {}), ("Equalization", {}), ("Equalization", {"bins": 16})])
def test_by_the_histogram_as_keras(name, more):
    keras = import_keras()
    for low, high in ((0, 255), (0, 1)):
        x = IMAGES / 255 * (high - low) + low
        x[0, ..., 1] = x[0, 0, 0, 1]
        expected = np.asarray(getattr(keras.layers, name)((low, high), **more)(x))
        found = getattr(layers, name)((low, high), **more)(x)
        np.testing.assert_allclose(found, expected, atol=1e-5 * high + 1e-6)


CLAHE = layers.ContrastLimitedAdaptiveHistogramEqualization


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("shape", "more"),
    [
        ((2, 64, 64, 3), {}),
        ((2, 32, 40, 1), {"tile_grid_size": (2, 2)}),
        ((1, 32, 16, 2), {"clip_limit": 0}),
        ((32, 64, 1), {"tile_grid_size": (1, 4), "clip_limit": 2.0}),
    ],
)
def test_by_the_histograms_of_tiles_as_keras(shape, more):
    keras = import_keras()
    x = (np.random.default_rng(5).uniform(0, 1, shape) ** 2 * 255).astype("float32")
    expected = np.asarray(keras.layers.ContrastLimitedAdaptiveHistogramEqualization(**more)(x))
    np.testing.assert_allclose(CLAHE(**more)(x), expected, atol=1e-3)


def test_tiles_past_the_image_are_filled_by_reflection():
    x = np.random.default_rng(6).uniform(0, 255, (1, 20, 30, 2)).astype("float32")
    more = {"clip_limit": 3.0, "tile_grid_size": (3, 4)}
    filled = np.pad(x, ((0, 0), (0, 1), (0, 2), (0, 0)), "symmetric")
    np.testing.assert_array_equal(CLAHE(**more)(x), CLAHE(**more)(filled)[:, :20, :30])
    first = layers.Permute((3, 1, 2))(x)
    np.testing.assert_array_equal(CLAHE(data_format="channels_first", **more)(first)[0, 1], CLAHE(**more)(x)[0, ..., 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"clip_limit": -1}, "clip_limit: expected"), ({"tile_grid_size": (8,)}, "tile_grid_size: expected")],
)
def test_bad_arguments_of_tiles(arguments, message):
    with pytest.raises(ValueError, match=message):
        CLAHE(**arguments)


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn(name):
    layer, same = (getattr(layers, name)(**DRAWN[name], seed=3) for _ in range(2))
    first, second = layer(IMAGES), layer(IMAGES)
    np.testing.assert_array_equal(same(IMAGES), first)
    assert (first != second).any()  # each call draws anew
    assert first.shape == IMAGES.shape
    assert first.min() >= -1e-3
    assert first.max() <= 255 + 1e-3
    np.testing.assert_array_equal(layer(IMAGES, training=False), IMAGES)
    again = pydtconv.saving.deserialize_keras_object(pydtconv.saving.serialize_keras_object(layer))
    assert json.dumps(again.get_config()) == json.dumps(layer.get_config())


@pytest.mark.parametrize("layer", [layers.MixUp(), layers.CutMix(), layers.MixUp(data_format="channels_first")])
def test_labels_are_mixed_as_the_images_are(layer):
    first = layer.data_format == "channels_first"
    images = np.arange(6.0)[:, None, None, None] * np.ones((1, 3, 20, 30) if first else (1, 20, 30, 3))
    found = layer({"images": images, "labels": LABELS})
    np.testing.assert_allclose(found["labels"].sum(1), 1, rtol=1e-5)
    means = found["images"].mean((1, 2, 3))
    np.testing.assert_allclose(
        found["labels"] @ np.arange(6.0), means, atol=0.45 if isinstance(layer, layers.CutMix) else 1e-4
    )


@pytest.mark.parametrize("name", ["MixUp", "CutMix"])
def test_mixed_precision(name):
    layer = getattr(layers, name)(seed=3, dtype="mixed_bfloat16")
    images = np.arange(6.0)[:, None, None, None] * np.ones((1, 8, 9, 3))
    found = np.asarray(layer(images))
    assert found.dtype == np.float32
    assert 0 <= found.min() <= found.max() <= 5


def test_parts_of_data_that_are_not_known_are_refused():
    data = {"images": IMAGES, "depth": np.zeros((6, 1, 4))}
    for layer in (layers.CutMix(), layers.RandomRotation(0.1)):
        with pytest.raises(NotImplementedError, match=r"expected data of images, .* got 'depth'"):
            layer(data)
    kept = layers.RandomRotation(0.1)({"images": IMAGES, "labels": LABELS})
    np.testing.assert_array_equal(kept["labels"], LABELS)


def test_random_functions_draw_anew_in_each_call_on_arrays():
    class Drawn(layers.Layer):
        def call(self, x):
            return x + pydtconv.random.gamma((3,), 2.0)

    layer, x = Drawn(), np.zeros((1, 3), "float32")
    set_random_seed(5)
    first, second = layer(x), layer(x)
    assert (first != second).all()
    set_random_seed(5)
    np.testing.assert_array_equal(layer(x), first)


def test_random_functions_draw_anew_in_each_step():
    random = pydtconv.random

    @pydtconv.function
    def draws(x):
        return random.shuffle(x), random.beta((3,), 0.5, 2.0), random.gamma((3,), 2.0), random.categorical(x[None], 9)

    x = np.arange(8, dtype="float32")
    first, second = draws(x), draws(x)
    assert all((a != b).any() for a, b in zip(first, second, strict=True))
    np.testing.assert_array_equal(np.sort(first[0]), x)
    assert 0 <= first[1].min() <= first[1].max() <= 1
    many = pydtconv.function(lambda x: random.gamma((4000,), 2.0) + 0 * x[0])(x)
    assert many.mean() == pytest.approx(2.0, abs=0.1)
    with pytest.raises(NotImplementedError, match=r"random\.gamma: alpha: expected a number"):
        pydtconv.function(lambda x: random.gamma((3,), x))(x)


def test_no_operations_change_nothing():
    images = np.random.default_rng(0).uniform(0, 255, (2, 6, 7, 3)).astype("float32")
    layer = layers.RandAugment(num_ops=0, bounding_box_format="xyxy")
    np.testing.assert_array_equal(layer(images, training=True), images)
    boxes = {"boxes": np.array([[[1, 2, 3, 4]]] * 2, "float32"), "labels": np.ones((2, 1), "float32")}
    found = layer({"images": images, "bounding_boxes": boxes}, training=True)
    np.testing.assert_array_equal(found["bounding_boxes"]["boxes"], boxes["boxes"])
    with pytest.raises(ValueError, match="RandAugment: num_ops: expected an integer of 0 or more, got -1"):
        layers.RandAugment(num_ops=-1)


def test_jitter_without_factors_changes_nothing():
    images = np.random.default_rng(0).random((3, 5, 6, 3)).astype("float32")
    np.testing.assert_array_equal(layers.RandomColorJitter()(images, training=True), images)
