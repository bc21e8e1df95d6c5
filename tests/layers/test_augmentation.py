"""Random changes of images: what each does, by Keras's definitions; seeds, places, files; Resizing; signatures."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, ops
from tests.real_keras import import_keras

IMAGES = np.random.default_rng(3).uniform(0, 255, (6, 8, 10, 3)).astype("float32")
#: settings with which a layer changes nothing
STILL = {
    "RandomBrightness": (0.0,),
    "RandomColorDegeneration": (0.0,),
    "RandomContrast": (0.0,),
    "RandomErasing": (0.0,),
    "RandomGaussianBlur": (0.0,),
    "RandomGrayscale": (0.0,),
    "RandomHue": (0.0,),
    "RandomInvert": (0.0,),
    "RandomPosterization": ((8, 8),),
    "RandomRotation": (0.0,),
    "RandomSaturation": ((0.5, 0.5),),
    "RandomSharpness": ((0.5, 0.5),),
    "RandomShear": (0.0, 0.0),
    "RandomTranslation": (0.0, 0.0),
    "RandomZoom": (0.0,),
    "Solarization": (0.0, (1.0, 1.0)),
}
#: settings with which it changes every image
CHANGING = {
    **dict.fromkeys(("RandomBrightness", "RandomContrast", "RandomHue", "RandomSharpness"), (0.9,)),
    **dict.fromkeys(("RandomColorDegeneration", "RandomGrayscale"), (1.0,)),
    **dict.fromkeys(("RandomErasing", "RandomGaussianBlur", "RandomInvert"), ((1.0, 1.0),)),
    "RandomPosterization": (2,),
    "RandomRotation": ((0.1, 0.3),),
    "RandomSaturation": ((0.8, 0.9), (0, 1)),
    "RandomShear": ((0.2, 0.4), 0.0),
    "RandomTranslation": ((0.2, 0.3), 0.0),
    "RandomZoom": ((0.2, 0.3),),
    "Solarization": (0.0, (0.4, 0.6)),
}


def layer_of(name, arguments, **more):
    return getattr(layers, name)(*arguments, seed=7, **more)


def test_noise_of_erasing_is_that_of_keras():
    """Normal numbers times the upper end, cut to the range: half of them are 0."""
    changed = layers.RandomErasing((1.0, 1.0), (0.9, 0.9), seed=1)(np.full((4, 40, 40, 3), 100, "float32"))
    noise = np.asarray(changed)[np.asarray(changed) != 100]
    expected = np.clip(255 * np.random.default_rng(0).standard_normal(100000), 0, 255)
    assert [noise.min(), noise.max()] == [0, 255]
    assert noise.mean() == pytest.approx(expected.mean(), rel=0.05)
    assert noise.std() == pytest.approx(expected.std(), rel=0.05)


@pytest.mark.parametrize(("factor", "share"), [((0.0, 1.0), 0.5), (0.5, 0.25), ((0.5, 1.0), 0.75)])
@pytest.mark.parametrize(("name", "more"), [("RandomErasing", {}), ("RandomGaussianBlur", {"sigma": (0.9, 0.9)})])
def test_the_probability_is_drawn_between_the_ends_of_factor(name, more, factor, share):
    images = np.repeat(IMAGES[:1, :4, :4], 1000, 0)
    changed = layer_of(name, (factor,), **more)(images) != images
    assert changed.any((1, 2, 3)).mean() == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("name", ["RandomBrightness", "RandomHue", "RandomErasing", "RandAugment", "RandomColorJitter"])
def test_the_ends_of_value_range_may_come_in_any_order(name):
    more = {"brightness_factor": 0.2} if name == "RandomColorJitter" else {"factor": (0.4, 0.6)}
    falling, rising = (layer_of(name, (), value_range=ends, **more) for ends in ((255, 0), (0, 255)))
    np.testing.assert_array_equal(falling(IMAGES), rising(IMAGES))
    assert falling.value_range == (0, 255)


def test_erasing_fills_within_the_range_of_values():
    erasing = layers.RandomErasing((1.0, 1.0), scale=1.0, fill_value=(-3, 0.5, 7), value_range=(0, 1), seed=1)
    found = erasing(np.full((1, 40, 40, 3), 0.25, "float32"))
    assert [set(np.unique(found[..., i])) - {0.25} for i in range(3)] == [{0.0}, {0.5}, {1.0}]


@pytest.mark.parametrize("name", STILL)
def test_layer(name):
    still = layer_of(name, STILL[name])(IMAGES)
    np.testing.assert_allclose(still, IMAGES, atol=1.0)  # posterization has 256 steps
    layer = layer_of(name, CHANGING[name])
    changed = layer(IMAGES)
    assert changed.shape == IMAGES.shape
    assert np.abs(changed - IMAGES).max() > 1
    if name not in ("RandomGrayscale", "RandomInvert", "RandomPosterization"):
        assert (layer(IMAGES) != changed).any()  # each call draws anew
    np.testing.assert_array_equal(layer(IMAGES, training=False), IMAGES)
    again = type(layer).from_config(layer.get_config())
    np.testing.assert_array_equal(again(IMAGES), layer_of(name, CHANGING[name])(IMAGES))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("RandomRotation", ((0.125, 0.125),)),
        ("RandomTranslation", ((0.25, 0.25), (-0.2, -0.2))),
        ("RandomZoom", ((0.3, 0.3), (-0.2, -0.2))),
        ("RandomBrightness", ((0.2, 0.2),)),
        ("RandomGrayscale", (1.0,)),
        ("RandomInvert", ((1.0, 1.0),)),
        ("RandomSaturation", ((0.7, 0.7),)),
        ("RandomPosterization", ((3, 3),)),
        ("RandomColorDegeneration", ((0.4, 0.4),)),
        ("RandomSharpness", ((0.3, 0.3),)),
        ("RandomSharpness", ((0.9, 0.9),)),
        ("Solarization", ()),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_values_are_keras_where_nothing_is_drawn(name, arguments):
    expected = np.asarray(getattr(import_keras().layers, name)(*arguments)(IMAGES, training=True))
    np.testing.assert_allclose(layer_of(name, arguments)(IMAGES), expected, atol=1e-2)


@pytest.mark.parametrize("high", [1, 255])
def test_solarization_turns_the_values_above_the_threshold(high):
    image = np.array([59, 62, 127, 200], "float32").reshape(1, 1, 4, 1) * (high / 255)
    found = layers.Solarization(threshold_factor=(0.25, 0.25), value_range=(0, high))(image)
    np.testing.assert_allclose(found.ravel() * (255 / high), [59, 62, 128, 55], rtol=1e-5)


@pytest.mark.parametrize(("factor", "middle", "beside"), [(0.0, 50, 10), (0.5, 130, 0), (0.75, 170, 0)])
def test_sharpness_goes_from_smoothed_to_sharpened(factor, middle, beside):
    image = np.zeros((1, 3, 3, 1), "float32")
    image[0, 1, 1] = 130
    found = layers.RandomSharpness((factor, factor))(image)
    np.testing.assert_allclose(found[0, 1, :, 0], [beside, middle, beside], atol=1e-4)


def test_an_image_is_changed_by_its_place_in_the_step():
    inputs = pydtconv.Input((8, 10, 3))
    model = pydtconv.Model(inputs, layers.RandomRotation(0.3, seed=1)(inputs, training=True))
    whole = model.predict(np.repeat(IMAGES[:1], 6, 0), batch_size=6, verbose=0)
    assert len({image.tobytes() for image in whole}) == 6


def test_in_training_alone():
    model = pydtconv.Sequential([layers.Input((8, 10, 3)), layers.RandomZoom(0.5, seed=1), layers.Flatten()])
    np.testing.assert_allclose(model.predict(IMAGES, verbose=0), IMAGES.reshape(6, -1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.RandomRotation(0.1, fill_mode="edge"), "RandomRotation: fill_mode: expected 'constant'"),
        (lambda: layers.RandomBrightness(2.0), "RandomBrightness: factor: expected a number or"),
        (lambda: layers.RandomHue(0.1, value_range=(1, 1)), "RandomHue: value_range: expected two different numbers"),
        (lambda: layers.AutoContrast(255), "AutoContrast: value_range: expected two different numbers, got 255"),
        (lambda: layers.RandomErasing(1.0, scale=(5, 7)), "RandomErasing: scale: expected a number or"),
        (lambda: layers.RandomGaussianBlur(1.0, sigma=(-1, 1)), "RandomGaussianBlur: sigma: expected a number or"),
        (lambda: layers.RandomZoom(0.1, interpolation="cubic"), "RandomZoom: interpolation: expected 'bilinear'"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_resizing():
    inputs = pydtconv.Input((8, 10, 3))
    model = pydtconv.Model(inputs, layers.Resizing(4, 5, crop_to_aspect_ratio=True)(inputs))
    expected = ops.image.resize(IMAGES, (4, 5), crop_to_aspect_ratio=True)
    np.testing.assert_allclose(model.predict(IMAGES, verbose=0), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["GaussianDropout", "AlphaDropout"])
def test_dropouts_keep_mean_and_deviation(name):
    x = np.random.default_rng(1).standard_normal((100, 400)).astype("float32")
    layer = getattr(layers, name)(0.3, seed=2)
    y = layer(x, training=True)
    assert y.mean() == pytest.approx(0, abs=0.02)
    assert y.std() == pytest.approx((1 + 0.3 / 0.7) ** 0.5 if name == "GaussianDropout" else 1, rel=0.03)
    np.testing.assert_array_equal(layer(x), x)


def test_factors_that_are_refused():
    for wrong in ({"a": 1}, "half", (0.1, 0.2, 0.3), (0.1, None), 1.5):
        with pytest.raises(ValueError, match="height_factor: expected a number or"):
            layers.RandomTranslation(wrong, 0.1)
    with pytest.raises(ValueError, match="factor: expected a number or"):
        layers.RandomGrayscale(-0.1)
    for factor in ((-0.4, -0.5), (-0.5, -0.4)):  # in any order
        assert layers.RandomZoom(factor)._height == (-0.5, -0.4)
