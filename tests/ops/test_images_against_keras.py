"""`keras.ops.image` beside Keras's, and gradients of what images are sampled with; `keras.random`."""

import numpy as np
import pytest

import pydtconv
from pydtconv import layers, ops, random, utils
from tests.ops.test_functions_against_keras import as_numpy, compare_gradients
from tests.real_keras import import_keras

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

RANDOM = np.random.default_rng(8)
X = RANDOM.random((2, 8, 6, 3), np.float32)
FIRST = np.ascontiguousarray(X.transpose(0, 3, 1, 2))
TURN = np.array([[0.913, -0.307, 1.01, 0.209, 1.107, -0.53, 0, 0], [1, 0, 1.53, 0, 1, 0.25, 0, 0]], "float32")
CORNERS = np.array([[0, 0], [5, 0], [0, 7], [5, 7]], "float32")
PLACES = RANDOM.uniform(-2, 9, (4, 5, 7)).astype("float32")[:3]
CASES = {
    "affine_transform": [
        *((X, TURN, {"fill_mode": m}) for m in ("constant", "nearest", "wrap", "mirror", "reflect")),
        (X[0], TURN[0], {"interpolation": "nearest", "fill_value": 0.5}),
        (FIRST, TURN, {"data_format": "channels_first"}),
    ],
    "crop_images": [(X, 1, 1, 2, None, None, 4), (FIRST, 2, 0, None, 2, 5, None, {"data_format": "channels_first"})],
    "pad_images": [(X, 1, 2, 1, 0), (X[0], 1, None, None, 2, 12, 11)],
    "extract_patches": [
        (X, 2),
        (X, (3, 2), {"strides": 1, "padding": "same"}),
        (X, 2, {"dilation_rate": 2, "strides": 1}),
    ],
    "gaussian_blur": [
        (X, (3, 3), (1.0, 0.7), {"data_format": "channels_last"}),
        (FIRST, (5, 5), (0.8, 0.8), {"data_format": "channels_first"}),
    ],
    "hsv_to_rgb": [(X,)],
    "rgb_to_hsv": [(X,), (FIRST, {"data_format": "channels_first"})],
    "rgb_to_grayscale": [
        (X,),
        ((255 * X).astype("uint8"),),
        (X[..., :1],),
        (FIRST[:, :1], {"data_format": "channels_first"}),
    ],
    "map_coordinates": [
        (X[0], PLACES, order, {"fill_mode": m}) for order in (0, 1) for m in ("constant", "wrap", "reflect")
    ],
    "perspective_transform": [(X, CORNERS, CORNERS + RANDOM.uniform(-1, 1, (4, 2)).astype("float32"))],
    "resize": [
        *((X, size, {"interpolation": i}) for size in ((5, 9), (16, 3)) for i in ("bilinear", "nearest")),
        *((X, (5, 4), {"antialias": True, "interpolation": i}) for i in ("bilinear", "bicubic")),
        (FIRST, (5, 5), {"data_format": "channels_first", "crop_to_aspect_ratio": True}),
        (X[0], (5, 5), {"pad_to_aspect_ratio": True, "fill_value": 0.3}),
        ((255 * X).astype("uint8"), (5, 9)),
    ],
    "scale_and_translate": [
        (
            X,
            (2, 10, 9, 3),
            np.array([1.3, 0.7], "float32"),
            np.array([0.5, -1.0], "float32"),
            (1, 2),
            method,
            {"antialias": a},
        )
        for method in ("linear", "cubic", "lanczos3")
        for a in (True, False)
    ],
    "sobel_edges": [(X,)],
    "ssim": [(RANDOM.random((2, 16, 14, 3), np.float32), RANDOM.random((2, 16, 14, 3), np.float32))],
}
#: cases whose gradients are compared, too
DIFFERENTIABLE = ("resize", "rgb_to_grayscale", "extract_patches", "sobel_edges")


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    keras = import_keras()
    theirs, ours = getattr(keras.ops.image, name), getattr(ops.image, name)
    for case in CASES[name]:
        args, kwargs = (case[:-1], case[-1]) if isinstance(case[-1], dict) else (case, {})
        copies = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
        expected = as_numpy(theirs(*copies, **kwargs))
        got = ours(*args, **kwargs)
        assert got.dtype == expected.dtype
        allowed = 1 if got.dtype.kind == "u" else 2e-5
        error = np.abs(got.astype("float64") - expected.astype("float64")).max()
        assert got.shape == expected.shape, kwargs
        assert error <= allowed, (kwargs, error)
        if name in DIFFERENTIABLE and got.dtype.kind == "f":
            compare_gradients(name, theirs, ours, args, kwargs, [expected])


@pytest.mark.parametrize("dtype", ["uint8", "int32", "bool"])
def test_what_moves_pixels_keeps_their_dtype(dtype):
    images = np.arange(16).reshape(4, 4, 1).astype(dtype)
    padded, cropped = ops.image.pad_images(images, 1, 0, 0, 2), ops.image.crop_images(images, 1, 2, 1, 0)
    np.testing.assert_array_equal(padded, np.pad(images, [(1, 0), (0, 2), (0, 0)]), strict=True)
    np.testing.assert_array_equal(cropped, images[1:3, 2:], strict=True)
    expected = images.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3).reshape(2, 2, 4)
    np.testing.assert_array_equal(ops.image.extract_patches(images, 2), expected, strict=True)
    assert ops.image.pad_images(np.full((1, 1, 1), 2**24 + 1), 0, 0, 0, 1)[0, 0, 0] == 2**24 + 1


def test_resizing_in_a_model():
    inputs = pydtconv.Input((8, 6, 3))
    model = pydtconv.Model(inputs, ops.image.resize(inputs, (4, 4)))
    np.testing.assert_allclose(model.predict(X, verbose=0), ops.image.resize(X, (4, 4)), atol=1e-6)


#: of a ramp of 35 pixels: sum of squares, sum of products with 1, 2, ..., least, first; by Keras on JAX and TensorFlow
RESIZED = {
    ((10, 3), "bicubic", False): (41.60453, 473.76243, -0.02179, -0.02179),
    ((10, 3), "bicubic", True): (36.54253, 443.94036, -0.0167, -0.0167),
    ((10, 3), "lanczos3", False): (42.76559, 472.5283, -0.02313, -0.02313),
    ((10, 3), "lanczos3", True): (37.91519, 443.47891, -0.02519, -0.02519),
    ((10, 3), "lanczos5", False): (42.77618, 470.2466, -0.00269, -0.00269),
    ((10, 3), "lanczos5", True): (38.91904, 446.52049, 0.00825, 0.00825),
    ((10, 3), "bilinear", False): (39.43788, 474.3, 0.04167, 0.04167),
    ((10, 3), "bilinear", True): (35.52825, 452.07719, 0.05357, 0.05357),
    ((4, 8), "bicubic", False): (46.33724, 549.36457, 0.19139, 0.29499),
    ((4, 8), "bicubic", True): (39.85344, 523.4539, 0.14532, 0.51415),
    ((4, 8), "lanczos3", False): (45.8397, 534.11614, 0.11725, 0.25469),
    ((4, 8), "lanczos3", True): (41.81341, 530.48164, 0.06135, 0.59124),
    ((4, 8), "lanczos5", False): (44.38425, 518.28869, 0.04559, 0.21236),
    ((4, 8), "lanczos5", True): (43.21398, 537.37905, 0.02309, 0.632),
    ((4, 8), "bilinear", False): (43.16522, 544.62891, 0.22461, 0.375),
    ((4, 8), "bilinear", True): (37.52849, 517.85054, 0.24256, 0.51786),
}


@pytest.mark.parametrize(("size", "interpolation", "antialias"), RESIZED)
def test_resizing_as_keras_on_jax_and_tensorflow(size, interpolation, antialias):
    x = (np.arange(35) ** 2 % 17 / 8).reshape(1, 7, 5, 1).astype("float32")
    ramp = np.arange(1, size[0] * size[1] + 1).reshape(1, *size, 1)
    layer = pydtconv.layers.Resizing(*size, interpolation=interpolation, antialias=antialias)
    y = np.asarray(ops.image.resize(x, size, interpolation, antialias), "float64")
    got = ((y**2).sum(), (y * ramp).sum(), y.min(), y[0, 0, 0, 0])
    np.testing.assert_allclose(got, RESIZED[size, interpolation, antialias], rtol=2e-6, atol=1e-5)
    np.testing.assert_allclose(layer(x), y, atol=1e-6)
    np.testing.assert_allclose(ops.image.resize(np.ones_like(x), size, interpolation, antialias), 1, atol=1e-6)


def test_images_of_bytes_in_a_model():
    """Cubic overshoots stay within the bytes, and products of bytes do not wrap."""
    images = np.where(RANDOM.random((2, 12, 12, 1)) > 0.5, 255, 0).astype("uint8")
    inputs = pydtconv.Input((12, 12, 1), dtype="uint8")
    for function in (
        lambda x: ops.image.resize(x, (17, 9), "bicubic"),
        lambda x: ops.image.ssim(x, x, max_val=255.0),
    ):
        found = pydtconv.Model(inputs, function(inputs)).predict(images, verbose=0)
        np.testing.assert_allclose(found, function(images), rtol=1e-6)


@pytest.mark.parametrize("name", ["rgb_to_hsv", "hsv_to_rgb"])
def test_colours_of_integers_are_refused(name):
    for images in (np.zeros((2, 2, 3), "uint8"), pydtconv.Input((2, 2, 3), dtype="int32")):
        with pytest.raises(ValueError, match=f"{name}: expected images of floats, got"):
            getattr(ops.image, name)(images)


MOMENTS = {
    "normal": (lambda: random.normal((20000,), 2.0, 3.0, seed=1), 2.0, 3.0),
    "uniform": (lambda: random.uniform((20000,), -1.0, 3.0, seed=1), 1.0, 4 / 12**0.5),
    "truncated_normal": (lambda: random.truncated_normal((20000,), seed=1), 0.0, 0.8796),
    "randint": (lambda: random.randint((20000,), 0, 10, seed=1), 4.5, 2.872),
    "gamma": (lambda: random.gamma((20000,), 2.0, seed=1), 2.0, 2**0.5),
    "beta": (lambda: random.beta((20000,), 2.0, 3.0, seed=1), 0.4, 0.2),
    "binomial": (lambda: random.binomial((20000,), 10, 0.3, seed=1), 3.0, 2.1**0.5),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name):
    draw, mean, deviation = MOMENTS[name]
    x = draw()
    np.testing.assert_array_equal(x, draw())
    assert x.mean() == pytest.approx(mean, abs=0.05 * max(1, deviation))
    assert x.std() == pytest.approx(deviation, rel=0.03)


def test_categorical_and_shuffle():
    draws = random.categorical(np.log([[0.2, 0.8]]), 5000, seed=2)
    assert draws.mean() == pytest.approx(0.8, abs=0.02)
    assert sorted(random.shuffle(np.arange(9), seed=3)) == list(range(9))


def test_a_seed_generator_goes_on():
    seeds = random.SeedGenerator(5)
    first, second = (random.normal((4,), seed=seeds) for _ in range(2))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(random.normal((4,), seed=random.SeedGenerator(5)), first)


class Noise(layers.Layer):
    def call(self, inputs):
        return inputs * 0.0 + random.normal((inputs.shape[0], 3)) + random.uniform((inputs.shape[0], 3), 10.0, 11.0)


def test_each_step_draws_anew():
    utils.set_random_seed(1)
    inputs = pydtconv.Input((3,))
    model = pydtconv.Model(inputs, Noise()(inputs))
    first, second = (model.predict(np.zeros((200, 3)), batch_size=200, verbose=0) for _ in range(2))
    assert not np.array_equal(first, second)
    assert first.mean() == pytest.approx(10.5, abs=0.2)


class Draws(layers.Layer):
    def call(self, inputs):
        return inputs + random.gamma((3,), ops.sum(inputs))


def test_what_cannot_be_drawn_in_a_graph_is_refused():
    with pytest.raises(NotImplementedError, match=r"random\.gamma: alpha: expected a number, where code is traced"):
        Draws()(np.zeros((2, 3), "float32"))


def test_the_state_of_a_row_of_seeds_can_be_put_back():
    seeds = random.SeedGenerator(7)
    random.normal((2,), seed=seeds)
    state = seeds.state.numpy()
    assert state.tolist() == [7, 1]
    assert state.dtype == "uint32"
    drawn = [random.normal((3,), seed=seeds) for _ in range(2)]
    other = random.SeedGenerator.from_config(seeds.get_config())
    other.state.assign(state)
    np.testing.assert_array_equal([random.normal((3,), seed=other) for _ in range(2)], drawn)
    with pytest.raises(ValueError, match="seed: expected an integer from 0"):
        random.SeedGenerator(-1)
