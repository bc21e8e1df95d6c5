"""Random changes of images that follow each other are one operator."""

import numpy as np
import pytest

from pydtconv import config, layers, models, optimizers, utils
from pydtconv.ops.augment import Augment

IMAGES = np.random.default_rng(0).uniform(0, 255, (6, 24, 28, 3)).astype("float32")


@pytest.fixture(autouse=True)
def precision():
    yield
    config.set_conv_precision("fast")


def trained(added, precision, images=IMAGES):
    """The kinds of random operators, and the losses of three steps, which show every pixel and draw once more."""
    config.set_conv_precision(precision)
    behind = [layers.Flatten(), layers.Dropout(0.5), layers.Dense(1, kernel_initializer="ones")]
    model = models.Sequential([layers.Input(images.shape[1:]), *added, *behind])
    model.compile(optimizers.SGD(0.0), "mse")
    losses = [float(model.train_on_batch(images, np.zeros((len(images), 1)))) for _ in range(3)]
    graph = model.plan(len(images)).graph
    return [node.op.name for node in graph.nodes if isinstance(node.op, Augment)], losses


def colours():
    return [
        layers.RandomBrightness(0.3, seed=1),
        layers.RandomContrast(0.4, seed=2),
        layers.RandomHue(0.5, seed=3),
        layers.RandomInvert(0.5, seed=4),
        layers.RandomGaussianBlur(0.5, seed=5),
    ]


def seeded(make):
    utils.set_random_seed(5)
    return make()


def test_colours_have_the_same_bits_together_and_apart():
    together, found = trained(seeded(colours), "fast")
    apart, expected = trained(seeded(colours), "strict")
    assert together == ["brightness+contrast+hue+invert+gaussian_blur"]
    assert apart == together[0].split("+")
    assert found == expected
    assert len(set(found)) == 3


def moves():
    return [
        layers.RandomTranslation(0.2, 0.2, fill_mode="nearest", seed=1),
        layers.RandomZoom(0.3, fill_mode="constant", fill_value=50.0, seed=2),
        layers.RandomRotation(0.1, fill_mode="reflect", seed=3),
    ]


def test_moves_are_one_resampling():
    y, x = np.mgrid[:24, :28]
    smooth = np.stack([x + y, 2 * x - y + 24, 100 + x], -1)[None].repeat(6, 0).astype("float32")
    together, found = trained(seeded(moves), "fast", smooth)
    apart, expected = trained(seeded(moves), "strict", smooth)
    assert together == ["translation+zoom+rotation"]
    assert apart == together[0].split("+")
    np.testing.assert_allclose(found, expected, rtol=2e-2)
    assert found != expected  # there is one interpolation instead of three


def test_what_others_read_or_is_no_list_of_steps_stays():
    inputs = layers.Input(IMAGES.shape[1:])
    first = layers.RandomBrightness(0.3)(inputs)
    second = layers.RandomHue(0.3)(first)
    third = layers.Equalization()(layers.RandomContrast(0.3)(second))
    last = layers.RandAugment()(layers.RandomInvert(0.5)(third))
    model = models.Model(inputs, layers.Dense(1)(layers.Flatten()(layers.add([first, last]))))
    model.compile("sgd", "mse")
    found = [node.op.name for node in model.plan(6).graph.nodes if isinstance(node.op, Augment)]
    assert found == ["brightness", "hue+contrast", "equalization", "invert+rand_augment"]


def test_outside_of_training_nothing_is_joined():
    model = models.Sequential([layers.Input(IMAGES.shape[1:]), *colours()])
    np.testing.assert_array_equal(model.predict(IMAGES, verbose=0), IMAGES)


def scaled():
    return [
        layers.Rescaling(1 / 127.5, -1),
        layers.Rescaling(2.0),
        layers.RandomBrightness(0.3, value_range=(-2, 2), seed=1),
        layers.Normalization(mean=[0.1, 0.2, 0.3], variance=[1.0, 4.0, 0.3]),
        layers.RandomRotation(0.2, seed=2),
        layers.Rescaling(0.5),
    ]


def test_scales_of_channels_around_them_join():
    together, found = trained(seeded(scaled), "fast")
    apart, expected = trained(seeded(scaled), "strict")
    assert together == ["scale+scale+scale+brightness+scale+scale+rotation+scale"]
    assert apart == ["brightness", "rotation"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_scales_alone_stay():
    together, _ = trained(seeded(lambda: [layers.Rescaling(1 / 127.5, -1), layers.Rescaling(2.0)]), "fast")
    assert together == []
