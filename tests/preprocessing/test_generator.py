"""ImageDataGenerator: changes of single images against Keras and PyTorch, batches of arrays, folders and tables."""

import os

import numpy as np
import pytest

import pydtconv as keras
from pydtconv import layers
from pydtconv.preprocessing.affine import FILL_MODES, affine_matrix, sample
from pydtconv.preprocessing.image import ImageDataGenerator
from tests.real_keras import import_keras

RNG = np.random.default_rng(0)
IMAGES = (RNG.random((12, 10, 8, 3)) * 255).astype("float32")

TOLERANCES = {
    "float16": {"rtol": 1e-3, "atol": 0.1},
    "float32": {"rtol": 1e-5, "atol": 1e-3},
    "float64": {"rtol": 1e-9},
}


def theirs():
    """Keras's class; skips the test where Keras is missing."""
    import_keras()
    from keras.src.legacy.preprocessing.image import ImageDataGenerator as Theirs

    return Theirs


@pytest.mark.parametrize(
    "settings",
    [
        {"featurewise_center": True, "featurewise_std_normalization": True},
        {"samplewise_center": True, "samplewise_std_normalization": True, "rescale": 1 / 255},
        {"featurewise_center": True, "zca_whitening": True, "rescale": 1 / 255, "zca_epsilon": 0.1},
        {"preprocessing_function": lambda x: x / 127.5 - 1, "data_format": "channels_first"},
    ],
    ids=["features", "samples", "whitening", "function"],
)
def test_normalization_is_keras(settings):
    first = settings.get("data_format") == "channels_first"
    images = IMAGES.transpose(0, 3, 1, 2) if first else IMAGES
    results = []
    for kind in ImageDataGenerator, theirs():
        generator = kind(**settings)
        generator.fit(images)
        results.append(np.stack([generator.standardize(x.copy()) for x in images]))
    np.testing.assert_allclose(*results, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_flips_shifts_of_channels_and_brightness_are_keras(data_format):
    pytest.importorskip("PIL")
    image = IMAGES[0] if data_format == "channels_last" else IMAGES[0].transpose(2, 0, 1)
    for parameters in (
        {"flip_horizontal": True},
        {"flip_vertical": True, "channel_shift_intensity": 30.0},
        {"brightness": 0.5} if data_format == "channels_last" else {"channel_shift_intensity": -20.0},
    ):
        ours, real = (kind(data_format=data_format) for kind in (ImageDataGenerator, theirs()))
        expected = real.apply_transform(image.copy(), parameters)
        np.testing.assert_allclose(ours.apply_transform(image.copy(), parameters), expected, rtol=1e-5)


def test_matrices_are_rotations_shifts_and_zooms_about_the_center():
    turned = affine_matrix(9, 9, theta=90)
    np.testing.assert_allclose(turned @ [4, 4, 1], [4, 4], atol=1e-12)
    image = IMAGES[0, :8]
    np.testing.assert_allclose(sample(image, affine_matrix(8, 8, theta=180), "nearest", 0, 1), image[::-1, ::-1], 1e-4)
    assert affine_matrix(8, 8) is None
    shifted = sample(image, affine_matrix(8, 8, tx=2), "constant", 7, 0)
    np.testing.assert_array_equal(shifted[:, :6], image[:, 2:])  # tx goes along the second axis, as in Keras
    assert (shifted[:, 6:] == 7).all()
    reflected = sample(image, affine_matrix(8, 8, ty=-3), "reflect", 0, 1)
    np.testing.assert_allclose(reflected, np.pad(image, ((3, 0), (0, 0), (0, 0)), "symmetric")[:8], rtol=1e-5)


@pytest.mark.parametrize("fill_mode", ["nearest", "reflect"])
def test_sampling_is_that_of_pytorch(fill_mode):
    torch = pytest.importorskip("torch")
    image = IMAGES[0]
    matrix = affine_matrix(10, 8, theta=25, tx=1.5, ty=-2.25, shear=10, zx=0.8, zy=1.3)
    rows, columns = np.mgrid[:10, :8]
    places = np.stack([m[0] * rows + m[1] * columns + m[2] for m in matrix[::-1]], -1)  # (x, y)
    grid = torch.tensor((places + 0.5) / [8, 10] * 2 - 1)[None].float()
    mode = {"nearest": "border", "reflect": "reflection"}[fill_mode]
    expected = torch.nn.functional.grid_sample(
        torch.tensor(image).permute(2, 0, 1)[None], grid, padding_mode=mode, align_corners=False
    )
    found = sample(image, matrix, fill_mode, 0, 1)
    np.testing.assert_allclose(found, expected[0].permute(1, 2, 0).numpy(), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("fill_mode", FILL_MODES)
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("moved", [{"ty": 1}, {"tx": -3, "ty": 7}, {"theta": 25, "tx": 1.5, "zx": 0.8, "zy": 2.3}])
def test_sampling_is_that_of_scipy(moved, order, fill_mode):
    ndimage = pytest.importorskip("scipy.ndimage")
    matrix, settings = affine_matrix(10, 8, **moved), {"order": order, "mode": fill_mode, "cval": 7}
    for dtype, c in (("float16", 2), ("float32", 3), ("float64", 1)):
        image = IMAGES[0, ..., :c].astype(dtype)
        found = sample(image, matrix, fill_mode, 7, order)
        channels = np.moveaxis(image, -1, 0).astype("float64")
        expected = [ndimage.affine_transform(x, matrix[:, :2], matrix[:, 2], **settings) for x in channels]
        assert (found.dtype, found.shape) == (image.dtype, image.shape)
        np.testing.assert_allclose(found, np.stack(expected, -1), **TOLERANCES[dtype])


def test_wrapping_keeps_what_is_inside():
    image = np.arange(9, dtype="float32").reshape(3, 3, 1)
    moved = sample(image, affine_matrix(3, 3, ty=1), "wrap", 0, 1)
    np.testing.assert_array_equal(moved[..., 0], [[3, 4, 5], [6, 7, 8], [3, 4, 5]])


def test_random_changes_stay_within_their_ranges():
    generator = ImageDataGenerator(
        rotation_range=20, width_shift_range=0.25, height_shift_range=[1, 3], zoom_range=0.2, shear_range=5,
        channel_shift_range=9, brightness_range=(0.5, 1.5), horizontal_flip=True,
    )  # fmt: skip
    drawn = [generator.get_random_transform((10, 8, 3)) for _ in range(60)]
    bounds = {"theta": (-20, 20), "ty": (-2, 2), "zx": (0.8, 1.2), "shear": (-5, 5), "brightness": (0.5, 1.5)}
    for name, (low, high) in bounds.items():
        values = [each[name] for each in drawn]
        assert low <= min(values) < max(values) <= high, name
    assert {each["tx"] for each in drawn} == {-3, -1, 1, 3}
    assert {each["flip_horizontal"] for each in drawn} == {True, False}
    assert not any(each["flip_vertical"] for each in drawn)
    assert generator.get_random_transform((10, 8, 3), seed=5) == generator.get_random_transform((10, 8, 3), seed=5)


def test_flow_gives_batches_of_arrays_for_fit_and_next():
    y, weights = np.arange(12) % 2, np.linspace(0, 1, 12)
    generator = ImageDataGenerator(rescale=1 / 255, validation_split=0.25)
    flow = generator.flow(IMAGES, y, batch_size=5, shuffle=False, sample_weight=weights, subset="training")
    assert (len(flow), flow.n) == (2, 9)
    x, labels, w = flow[1]
    np.testing.assert_allclose(x, IMAGES[8:] / 255, rtol=1e-6)
    np.testing.assert_array_equal(labels, y[8:])
    np.testing.assert_array_equal(w, weights[8:])
    seen = [next(flow)[0].shape[0] for _ in range(5)]
    assert seen == [5, 4, 5, 4, 5]
    assert len(generator.flow(IMAGES, batch_size=4, subset="validation")[0]) == 3
    model = keras.Sequential([keras.Input((10, 8, 3)), layers.Flatten(), layers.Dense(1)])
    model.compile("sgd", "mse")
    history = model.fit(generator.flow(IMAGES, y, batch_size=4), epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2
    assert model.predict(generator.flow(IMAGES, batch_size=5, shuffle=False), verbose=0).shape == (12, 1)


@pytest.fixture
def folder(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    for name, count in (("cats", 4), ("dogs", 3)):
        os.makedirs(tmp_path / name)
        for i in range(count):
            pixels = np.full((6, 9, 3), 40 * i + 5, "uint8")
            image_module.fromarray(pixels).save(tmp_path / name / f"{i}.png")
    return tmp_path


def test_flow_from_directory_is_keras(folder, capsys):
    keras_class = theirs()
    settings = {"target_size": (4, 5), "batch_size": 3, "shuffle": False, "subset": "training"}
    for mode in "categorical", "binary", "sparse", "input", None:
        flow = ImageDataGenerator(validation_split=0.25).flow_from_directory(folder, class_mode=mode, **settings)
        assert flow.class_indices == {"cats": 0, "dogs": 1}
        batch = flow[1]
        assert (batch if mode is None else batch[0]).shape == (3, 4, 5, 3)
        real = keras_class(validation_split=0.25).flow_from_directory(str(folder), class_mode=mode, **settings)
        assert (flow.filenames, flow.samples) == (real.filenames, real.samples)
        expected = real[1]
        for a, b in zip(batch if mode else [batch], expected if mode else [expected], strict=True):
            np.testing.assert_allclose(a, b)
    assert "Found 6 images belonging to 2 classes." in capsys.readouterr().out


def test_flow_from_dataframe_reads_a_table(folder, tmp_path):
    table = {"filename": ["cats/0.png", "dogs/1.png", "cats/9.png", "dogs/2.png"], "class": ["c", "d", "c", "d"],
             "size": [1.0, 2.0, 3.0, 4.0]}  # fmt: skip
    generator = ImageDataGenerator()
    settings = {"directory": str(folder), "target_size": (6, 9), "shuffle": False}
    x, y = generator.flow_from_dataframe(table, **settings)[0]
    np.testing.assert_array_equal(y, [[1, 0], [0, 1], [0, 1]])  # cats/9.png is not there
    np.testing.assert_array_equal(x[:, 0, 0, 0], [5, 45, 85])
    _, sizes, weights = generator.flow_from_dataframe(
        table, y_col="size", class_mode="raw", weight_col="size", **settings
    )[0]
    np.testing.assert_array_equal(sizes, [1, 2, 4])
    np.testing.assert_array_equal(weights, sizes)
    several = {**table, "class": [["c", "x"], ["d"], "c", ["x"]]}
    chosen = generator.flow_from_dataframe(several, classes=["d", "c"], **settings)
    np.testing.assert_array_equal(chosen[0][1], [[0, 1], [1, 0]])  # without the label x, and what has no other
    with pytest.raises(ValueError, match="expected a column 'label', got"):
        generator.flow_from_dataframe(table, y_col="label", **settings)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: ImageDataGenerator(fill_mode="mirror"), "fill_mode: expected one of constant, nearest"),
        (lambda: ImageDataGenerator(zoom_range="x"), "zoom_range: expected a number or two"),
        (lambda: ImageDataGenerator(validation_split=2), "validation_split: expected a number between 0 and 1"),
        (lambda: ImageDataGenerator().flow(IMAGES, np.zeros(3)), "y: expected 12 entries"),
        (lambda: ImageDataGenerator().flow(IMAGES[0]), "4 dimensions"),
        (lambda: ImageDataGenerator().flow_from_directory("nowhere"), "expected a folder, got 'nowhere'"),
    ],
)
def test_what_does_not_fit_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def test_iterators_of_one_seed_change_images_and_masks_alike():
    images = np.random.default_rng(0).random((6, 5, 5, 1)).astype("float32")

    def batches(seed):
        generator = ImageDataGenerator(rotation_range=30, horizontal_flip=True)
        flow = generator.flow(images, batch_size=4, seed=seed)
        return [next(flow) for _ in range(4)]

    a, b, other = batches(3), batches(3), batches(4)
    for first, second in zip(a, b, strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.allclose(a[0], other[0])
    assert not np.allclose(np.sort(np.concatenate(a[:2]).ravel()), np.sort(np.concatenate(a[2:]).ravel()))
