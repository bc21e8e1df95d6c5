"""Integers and booleans stay what they are where Keras keeps them, and layers that compute on floats take them."""

import numpy as np
import pytest

import pydtconv as our_keras
from pydtconv import layers, ops
from tests.real_keras import import_keras

BIG = 2**24 + 1  # which float32 does not have
RANDOM = np.random.default_rng(2)


def test_a_declared_input_is_read_as_it_is():
    inputs = our_keras.Input((3,), dtype="int32")
    model = our_keras.Model(inputs, ops.sum(inputs, axis=1))
    x = np.array([[BIG, 2, 0], [1, 2, 3]], "int32")
    for result in (model(x), model.predict(x, verbose=0), model.predict_on_batch(x)):
        assert np.asarray(result).dtype == np.int32
        np.testing.assert_array_equal(result, [BIG + 2, 6])


def test_inputs_by_name_have_the_dtypes_of_their_inputs():
    ids, images = our_keras.Input((1,), dtype="int64", name="ids"), our_keras.Input((4,), name="images")
    model = our_keras.Model({"images": images, "ids": ids}, {"ids": ids, "images": images})
    given = {"ids": np.array([[BIG]]), "images": np.array([[1, 2, 3, 4]], "uint8")}
    results = model.predict(given, verbose=0)
    assert (results["ids"].dtype, results["images"].dtype) == (np.int64, np.float32)
    assert results["ids"] == BIG


def test_a_batch_of_another_dtype_is_not_rounded():
    class Doubled(our_keras.Model):
        def call(self, x):
            return x * 2

    model = Doubled()
    np.testing.assert_array_equal(model.predict(np.array([[BIG]]), verbose=0), [[2 * BIG]])
    np.testing.assert_array_equal(model.predict(np.array([[0.25]]), verbose=0), [[0.5]])
    np.testing.assert_array_equal(model(np.array([[BIG]])), [[2 * BIG]])
    uint8, int32 = (model.predict(np.array([[200]], dtype), verbose=0) for dtype in ("uint8", "int32"))
    assert (uint8.dtype, int32.dtype) == (np.uint8, np.int32)


KEPT = {
    "Add": lambda k, x: k.Add()([x, x]),
    "Concatenate": lambda k, x: k.Concatenate()([x, x]),
    "Cropping2D": lambda k, x: k.Cropping2D(((1, 0), (0, 2)))(x),
    "Flatten": lambda k, x: k.Flatten()(x),
    "Permute": lambda k, x: k.Permute((3, 1, 2))(x),
    "Reshape": lambda k, x: k.Reshape((-1,))(x),
    "UpSampling2D": lambda k, x: k.UpSampling2D((2, 3))(x),
    "ZeroPadding2D": lambda k, x: k.ZeroPadding2D(1)(x),
}


@pytest.mark.parametrize("dtype", ["uint8", "int32", "bool"])
@pytest.mark.parametrize("layer", KEPT.values(), ids=KEPT)
def test_moved_as_by_keras(layer, dtype):
    keras = import_keras()
    x = RANDOM.integers(0, 2 if dtype == "bool" else 100, (2, 3, 4, 2)).astype(dtype)
    wanted = layer(keras.layers, x).numpy()
    inputs = our_keras.Input(x.shape[1:], dtype=dtype)
    model = our_keras.Model(inputs, layer(layers, inputs))
    for result in (np.asarray(layer(layers, x)), model.predict(x, verbose=0)):
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted)


FLOATS = {
    "AveragePooling2D": lambda: layers.AveragePooling2D(2),
    "BatchNormalization": lambda: layers.BatchNormalization(),
    "Conv2D": lambda: layers.Conv2D(2, 3),
    "DepthwiseConv2D": lambda: layers.DepthwiseConv2D(2),
    "GlobalAveragePooling2D": lambda: layers.GlobalAveragePooling2D(),
    "LayerNormalization": lambda: layers.LayerNormalization(),
    "UpSampling2D": lambda: layers.UpSampling2D(2, interpolation="bicubic"),
}


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("made", FLOATS.values(), ids=FLOATS)
def test_layers_of_floats_take_images_of_bytes(made, policy):
    layer = made()
    layer.dtype_policy = policy
    x = RANDOM.integers(0, 255, (2, 5, 4, 3)).astype("uint8")
    wanted = np.asarray(layer(x.astype("float32")))
    np.testing.assert_array_equal(layer(x), wanted)

    class Own(our_keras.Model):
        def call(self, x):
            return layer(x)

    np.testing.assert_array_equal(Own().predict(x, verbose=0), wanted)


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])  # bicubic is that of Keras on TensorFlow and JAX
def test_up_sampling_of_keras(interpolation):
    keras = import_keras()
    x = RANDOM.random((2, 4, 5, 3), np.float32)
    wanted = keras.layers.UpSampling2D((2, 3), interpolation=interpolation)(x)
    ours = layers.UpSampling2D((2, 3), interpolation=interpolation)(x)
    np.testing.assert_allclose(ours, wanted.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["RandomFlip", "RandomCrop", "CenterCrop", "RandomRotation", "AutoContrast", "MixUp", "CutMix"]
)
def test_layers_that_change_images_take_bytes(name):
    """As in Keras they give floats, in training and outside of it; labels of a dict stay what they are."""
    arguments = {"RandomCrop": (8, 8), "CenterCrop": (8, 8), "RandomRotation": (0.1,)}.get(name, ())
    images = np.random.default_rng(0).integers(0, 255, (4, 16, 16, 3)).astype("uint8")
    layer = getattr(layers, name)(*arguments)
    inputs = our_keras.Input((16, 16, 3), dtype="uint8")
    model = our_keras.Model(inputs, layer(inputs))
    for found in (layer(images), model(images), model.predict(images, verbose=0)):
        assert np.asarray(found).dtype == np.float32
    data = {"images": images, "labels": np.eye(4, dtype="float32")}
    assert np.asarray(layer(data)["images"]).dtype == np.float32


def test_signals_of_integers():
    """Cropped and repeated they stay integers, as images do; spectrograms are floats."""
    x = np.arange(12, dtype="int32").reshape(1, 6, 2)
    np.testing.assert_array_equal(layers.Cropping1D((1, 2))(x), x[:, 1:4])
    repeated = layers.UpSampling1D(2)(x)
    np.testing.assert_array_equal(repeated, np.repeat(x, 2, axis=1))
    assert repeated.dtype == np.int32
    spectrogram = layers.MelSpectrogram(fft_length=8, sequence_stride=4, num_mel_bins=3)
    signal = np.arange(32, dtype="int32") % 7
    np.testing.assert_array_equal(spectrogram(signal), spectrogram(signal.astype("float32")))
    assert spectrogram.compute_output_shape((2, None)) == (2, 3, None)


def test_integers_become_floats_of_the_layers_dtype():
    x = np.array([[0, 1], [2, 1]], "uint8")
    assert np.asarray(layers.Rescaling(0.5, dtype="float64")(x)).dtype == np.float64
    assert np.asarray(layers.Rescaling(1.0)(x)).dtype == np.float32
    assert np.asarray(layers.CategoryEncoding(3, dtype="float64")(x)).dtype == np.float64
    found = layers.Discretization([1.0], output_mode="one_hot", dtype="float64")(x)
    assert np.asarray(found).dtype == np.float64
