"""Image files, padded rows, windows of series, and the parts of fit's data, beside Keras's."""

import io
import os

import numpy as np
import pytest

import pydtconv
from pydtconv import utils
from pydtconv.files.reading import BadFileError
from tests.disks import file_size_limit
from tests.real_keras import import_keras

Image = pytest.importorskip("PIL.Image")
PIXELS = np.random.default_rng(2).integers(0, 256, (9, 12, 3), np.uint8)


@pytest.fixture
def file(tmp_path):
    Image.fromarray(PIXELS).save(tmp_path / "image.png")
    return tmp_path / "image.png"


@pytest.mark.parametrize("mode", ["rgb", "grayscale", "rgba"])
@pytest.mark.parametrize(
    "size",
    [{}, {"target_size": (5, 6)}, {"target_size": (4, 4), "keep_aspect_ratio": True, "interpolation": "bilinear"}],
)
def test_load_img(file, mode, size):
    keras = import_keras()
    expected = keras.utils.img_to_array(keras.utils.load_img(file, color_mode=mode, **size))
    np.testing.assert_array_equal(utils.img_to_array(utils.load_img(file, color_mode=mode, **size)), expected)


def test_what_is_no_image_is_named_and_reaches_no_interpreter(tmp_path, monkeypatch):
    from PIL import EpsImagePlugin

    def ghostscript(*args, **options):
        raise AssertionError("Ghostscript was called")

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", ghostscript)
    path, whole = tmp_path / "a.jpg", io.BytesIO()
    Image.new("RGB", (20, 16)).save(path, format="EPS")
    with pytest.raises(BadFileError, match=r"a\.jpg: no image that can be decoded, .*: expected BMP, .*, WEBP$"):
        utils.load_img(path)
    Image.fromarray(np.repeat(PIXELS, 40, 0)).save(whole, format="JPEG")
    with pytest.raises(BadFileError, match=r"the bytes: no image that can be decoded, .*truncated"):
        utils.load_img(io.BytesIO(whole.getvalue()[:-200]))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(BadFileError, match=r"a\.jpg: expected a regular file, got a pipe"):
        utils.load_img(path)


@pytest.mark.parametrize("name", ["bmp", "gif", "png", "ppm", "tiff", "webp"])
def test_formats(tmp_path, name):
    Image.fromarray(PIXELS).save(tmp_path / "image", format=name, **({"lossless": True} if name == "webp" else {}))
    assert utils.load_img(tmp_path / "image").size == PIXELS.shape[1::-1]


def test_of_bytes_and_back(file, tmp_path):
    image = utils.load_img(io.BytesIO(file.read_bytes()))
    x = utils.img_to_array(image, dtype="uint8")
    np.testing.assert_array_equal(x, PIXELS)
    utils.save_img(tmp_path / "again.png", x, scale=False)
    np.testing.assert_array_equal(utils.img_to_array(utils.load_img(tmp_path / "again.png")), PIXELS)
    first = utils.img_to_array(image, data_format="channels_first")
    np.testing.assert_array_equal(np.asarray(utils.array_to_img(first, "channels_first", scale=False)), PIXELS)
    scaled = np.asarray(utils.array_to_img(np.array([[[0.0], [1.0]], [[3.0], [2.0]]])))
    np.testing.assert_array_equal(scaled, [[0, 85], [255, 170]])


def test_an_image_file_is_whole_or_as_it_was(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype("float32")
    utils.save_img(tmp_path / "a.png", noise, scale=False)
    before = (tmp_path / "a.png").read_bytes()
    with file_size_limit(len(before) // 2), pytest.raises(OSError, match="what was there before is untouched"):
        utils.save_img(tmp_path / "a.png", 255 - noise, scale=False)
    assert (tmp_path / "a.png").read_bytes() == before
    with pytest.raises(ValueError, match=r"expected file_format, or a name with the suffix of an image, got .*a'"):
        utils.save_img(tmp_path / "a", noise)
    utils.save_img(str(tmp_path / "a"), noise, file_format="jpeg")
    with Image.open(tmp_path / "a") as image:
        assert image.format == "JPEG"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "a.png"]


@pytest.mark.parametrize(
    "options", [{}, {"maxlen": 2}, {"maxlen": 4, "padding": "post", "truncating": "post", "value": 7}]
)
def test_pad_sequences(options):
    rows = [[1], [2, 3], [4, 5, 6]]
    expected = import_keras().utils.pad_sequences(rows, **options)
    np.testing.assert_array_equal(utils.pad_sequences(rows, **options), expected)


def test_windows_of_a_series():
    data, targets = np.arange(20.0), np.arange(20) * 10
    batches = utils.timeseries_dataset_from_array(data, targets, 3, sequence_stride=2, sampling_rate=2, batch_size=4)
    assert len(batches) == 2
    x, y = batches[0]
    np.testing.assert_array_equal(x, [[0, 2, 4], [2, 4, 6], [4, 6, 8], [6, 8, 10]])
    np.testing.assert_array_equal(y, [0, 20, 40, 60])
    alone = utils.timeseries_dataset_from_array(data, None, 4, start_index=5, end_index=10)
    np.testing.assert_array_equal(alone[0], [[5, 6, 7, 8], [6, 7, 8, 9]])
    with pytest.raises(ValueError, match="20 elements hold no window of 30"):
        utils.timeseries_dataset_from_array(data, None, 30)
    with pytest.raises(ValueError, match="format: expected 'tf' or 'grain', got 'torch'"):
        utils.timeseries_dataset_from_array(data, None, 3, format="torch")


@pytest.mark.parametrize("data", [1, (1,), (1, 2), (1, 2, 3), [4, 5]])
def test_parts_of_fits_data(data):
    keras = import_keras()
    parts = utils.unpack_x_y_sample_weight(data)
    assert parts == tuple(keras.utils.unpack_x_y_sample_weight(data))
    assert utils.pack_x_y_sample_weight(*parts) == keras.utils.pack_x_y_sample_weight(*parts)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("size", [(5, 9), (20, 7), (30, 40)])
def test_smart_resize_is_that_of_keras(size):
    keras = import_keras()
    x = np.random.default_rng(0).uniform(0, 255, (2, 12, 14, 3)).astype("float32")
    ours, theirs = (lib.preprocessing.image.smart_resize for lib in (pydtconv, keras))
    for image in (x, x[0]):
        found = ours(image, size)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, theirs(image, size), atol=1e-3)
    first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(
        ours(first, size, "nearest", "channels_first"), theirs(first, size, "nearest", "channels_first"), atol=1e-3
    )


@pytest.mark.parametrize("kind", ["jpg", "JPG", "jpeg", "png", "bmp"])
def test_formats_of_files_by_their_suffixes(kind, tmp_path):
    image = np.full((4, 4, 3), 128, "uint8")
    utils.save_img(tmp_path / "image", image, file_format=kind, scale=False)
    np.testing.assert_allclose(utils.load_img(tmp_path / "image"), image, atol=2)
    with open(tmp_path / "open", "wb") as file:
        utils.save_img(file, image, file_format=kind, scale=False)
    assert (tmp_path / "open").read_bytes() == (tmp_path / "image").read_bytes()
