"""Layers that draw random numbers: their share, shapes, seeds, and nothing at all in inference."""

import numpy as np
import pytest

from pydtconv import Input, Model, Sequential, layers, optimizers, random
from pydtconv.utils import set_random_seed

X = np.random.default_rng(0).uniform(1, 2, (200, 6, 6, 4)).astype("float32")


def test_dropout_keeps_a_share_and_scales_it():
    y = layers.Dropout(0.25)(X, training=True)
    kept = y != 0
    assert kept.mean() == pytest.approx(0.75, abs=0.02)
    np.testing.assert_allclose(y[kept], X[kept] / 0.75, rtol=1e-6)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_spatial_dropout_drops_whole_channels(data_format):
    y = layers.SpatialDropout2D(0.5, data_format=data_format)(X, training=True) != 0
    axes = (1, 2) if data_format == "channels_last" else (2, 3)
    assert (y.all(axes) == y.any(axes)).all()
    assert y.mean() == pytest.approx(0.5, abs=0.06)


def test_noise():
    y = layers.GaussianNoise(0.5)(X, training=True) - X
    assert y.std() == pytest.approx(0.5, rel=0.02)
    assert abs(y.mean()) < 0.02


def test_flip_mirrors_about_half_of_the_images():
    y = layers.RandomFlip("horizontal")(X, training=True)
    same = (y == X).all((1, 2, 3))
    assert same.mean() == pytest.approx(0.5, abs=0.15)
    np.testing.assert_array_equal(y[~same], X[~same][:, :, ::-1])


def test_crop_takes_windows_in_training_and_the_middle_else():
    layer = layers.RandomCrop(4, 4)
    assert layer.compute_output_shape((None, 6, 6, 4)) == (None, 4, 4, 4)
    np.testing.assert_array_equal(layer(X, training=False), X[:, 1:5, 1:5])
    y = layer(X, training=True)
    windows = [X[:, i : i + 4, j : j + 4] for i in range(3) for j in range(3)]
    assert all(any((image == window[n]).all() for window in windows) for n, image in enumerate(y))


@pytest.mark.parametrize("training", [True, False])
def test_crop_resizes_smaller_images(training):
    resized = layers.Resizing(7, 4, crop_to_aspect_ratio=True)(X)
    np.testing.assert_array_equal(layers.RandomCrop(7, 4)(X, training=training), resized)


@pytest.mark.parametrize(
    "make",
    [lambda: layers.Dropout(0.5), lambda: layers.GaussianNoise(1.0), lambda: layers.RandomFlip()],
    ids=["Dropout", "GaussianNoise", "RandomFlip"],
)
def test_seeds_and_inference(make):
    def draw():
        set_random_seed(3)
        return make()(X, training=True)

    np.testing.assert_array_equal(draw(), draw())
    assert (make()(X, training=True) != draw()).any()
    np.testing.assert_array_equal(make()(X, training=False), X)


@pytest.mark.parametrize(
    "layer",
    [
        layers.Dropout(0.5),
        layers.SpatialDropout2D(0.5),
        layers.GaussianNoise(1.0),
        layers.RandomFlip("horizontal"),
        layers.RandomCrop(3, 3),
    ],
    ids=lambda layer: type(layer).__name__,
)
@pytest.mark.parametrize("style", ["subclassed", "functional"])
def test_training_is_what_a_call_says_in_predict_too(layer, style):
    class Always(Model):
        def __init__(self):
            super().__init__()
            self.inner = layer

        def call(self, inputs):
            return self.inner(inputs, training=True)

    inputs = layers.Input((6, 6, 4))
    model = Always() if style == "subclassed" else Model(inputs, layer(inputs, training=True))
    first, second = (model.predict(X, batch_size=200, verbose=0) for _ in range(2))
    unchanged = X if first.shape == X.shape else X[:, 1:4, 1:4]
    assert not np.array_equal(first, unchanged)
    assert not np.array_equal(first, second)


def test_batch_normalization_takes_the_batch_where_a_call_says_so():
    inputs = layers.Input((6, 6, 4))
    layer = layers.BatchNormalization()
    model = Model(inputs, layer(inputs, training=True))
    y = model.predict(X, batch_size=200, verbose=0)
    np.testing.assert_allclose(y.mean((0, 1, 2)), 0, atol=1e-4)
    np.testing.assert_allclose(layer.moving_mean.numpy(), 0.01 * X.mean((0, 1, 2)), rtol=1e-4)


@pytest.mark.parametrize("make", [layers.Dropout, layers.AlphaDropout])
def test_noise_shape(make):
    """None stands for the input's extent; what is no extent is refused."""
    for given in (None, 1, None, 4), [200, 1, 6, 4]:
        layer = make(0.5, noise_shape=given, seed=1)
        assert layer.noise_shape == tuple(given)
        dropped = layer(X, training=True) == layer(X, training=True).min()
        assert (dropped.all(1) == dropped.any(1)).all()
    with pytest.raises(ValueError, match="noise_shape: expected 4 extents"):
        make(0.5, noise_shape=(1, 4))(X, training=True)
    for wrong in "abc", 3, (20, 1.5, 10), (20, -1, 10), (20, 0, 10):
        with pytest.raises(ValueError, match="noise_shape: expected None or a sequence of integers of 1 or more"):
            make(0.5, noise_shape=wrong)


@pytest.mark.parametrize(
    "make",
    [
        lambda layers: layers.Dropout(0.5, seed=3),
        lambda layers: layers.SpatialDropout2D(0.5, seed=3),
        lambda layers: layers.GaussianNoise(1.0, seed=3),
        lambda layers: layers.GaussianDropout(0.5, seed=3),
        lambda layers: layers.AlphaDropout(0.5, seed=3),
        lambda layers: layers.RandomFlip(seed=3),
        lambda layers: layers.RandomCrop(3, 3, seed=3),
        lambda layers: layers.RandomRotation(0.3, seed=3),
    ],
    ids=["Dropout", "Spatial", "Noise", "Gaussian", "Alpha", "Flip", "Crop", "Rotation"],
)
def test_a_seed_decides_calls_on_arrays(make):
    one, other = make(layers), make(layers)
    images = np.random.default_rng(0).normal(size=(8, 6, 6, 2)).astype("float32")
    first, second = one(images, training=True), one(images, training=True)
    np.testing.assert_array_equal(first, other(images, training=True))
    assert (np.asarray(first) != second).any()
    np.testing.assert_array_equal(second, other(images, training=True))


@pytest.mark.parametrize(
    "drawn",
    [
        lambda: layers.Dropout(0.5),
        lambda: layers.GaussianNoise(1.0),
        lambda: layers.GaussianDropout(0.5),
        lambda: layers.AlphaDropout(0.5),
        lambda: lambda x, training: random.dropout(x, 0.5) if training else x,
    ],
)
def test_of_constants_each_step_of_training_draws_anew(drawn):
    class Masked(layers.Layer):
        def __init__(self):
            super().__init__()
            self.drawn = drawn()

        def call(self, x, training=False):
            return x * self.drawn(np.ones((1, 8), "float32"), training=training)

    model = Sequential([Input((8,)), Masked(), layers.Dense(1)])
    model.compile(optimizers.SGD(0.0), "mse")
    x = np.arange(32.0).reshape(4, 8) ** 2
    assert len(set(model.fit(x, np.zeros((4, 1)), epochs=4, verbose=0).history["loss"])) == 4
    np.testing.assert_array_equal(model.predict(x, verbose=0), model.layers[-1](x.astype("float32")))
