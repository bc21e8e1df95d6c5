"""Resizing of images of bytes."""

import numpy as np
import pytest

from pydtconv._ext import image
from pydtconv.files.resampling import resize

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")
#: height and width of an image and of what becomes of it: larger, smaller, one pixel, more than a vector, and as it is
SIZES = [(9, 13, 4, 5), (4, 5, 9, 13), (1, 1, 3, 2), (50, 70, 1, 1), (37, 101, 16, 33), (6, 7, 6, 7), (300, 2, 5, 90)]


def pixels(height, width, channels):
    return np.random.default_rng(3).integers(0, 256, (height, width, channels), np.uint8)


def weight(name, distance):
    x = np.abs(distance)
    if name == "bilinear":
        return np.maximum(1 - x, 0)
    if name == "lanczos":
        return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)
    return np.where(x < 1, 1.5 * x**3 - 2.5 * x**2 + 1, np.where(x < 2, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2, 0))


def matrix(name, extent, size, first, last):
    """(size, extent) in float64, number by number; a pixel whose middle is not covered counts nothing."""
    found, scale = np.zeros((size, extent)), (last - first) / size
    for i in range(size):
        centre = first + (i + 0.5) * scale
        if name == "nearest":
            found[i, min(int(centre), extent - 1)] = 1
            continue
        stretch, reach = max(scale, 1), {"bilinear": 1, "bicubic": 2, "lanczos": 3}[name]
        for k in range(extent):
            if int(centre - reach * stretch + 0.5) <= k < int(centre + reach * stretch + 0.5):
                found[i, k] = weight(name, (k + 0.5 - centre) / stretch)
        found[i] /= found[i].sum()
    return found


@pytest.mark.parametrize("name", INTERPOLATIONS)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_sums_of_pixels_rounded_once(name, channels):
    for height, width, rows, columns in SIZES:
        x, out = pixels(height, width, channels), np.empty((rows, columns, channels), np.uint8)
        for box in ((0, 0, height, width), (0.3 * height, 0.1 * width, 0.9 * height, 0.7 * width)):
            resize(x, out, name, tuple(map(float, box)))
            down, across = matrix(name, height, rows, box[0], box[2]), matrix(name, width, columns, box[1], box[3])
            exact = np.clip(np.einsum("ih,hwc,jw->ijc", down, x.astype(float), across), 0, 255)
            assert np.abs(out - exact).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("name", INTERPOLATIONS)
def test_what_is_beyond_the_image_is_black(name):
    for height, width, rows, columns in SIZES:
        x = pixels(height, width, 3)
        for down, across in (0, width), (height, 0), (1, 2):
            padded = np.pad(x, ((down, down + 1), (across, across + 3), (0, 0)))
            found, expected = np.empty((2, rows, columns, 3), np.uint8)
            box = -down, -across, height + down + 1, width + across + 3
            resize(x, found, name, tuple(map(float, box)))
            resize(padded, expected, name, (0.0, 0.0, *map(float, padded.shape[:2])))
            np.testing.assert_array_equal(found, expected)


def test_values_of_pillow():
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for height, width, rows, columns in SIZES:
        x, out = pixels(height, width, 3), np.empty((rows, columns, 3), np.uint8)
        resize(x, out, "bilinear", (0.0, 0.0, float(height), float(width)))
        expected = np.asarray(Image.fromarray(x).resize((columns, rows), Image.Resampling.BILINEAR))
        assert np.abs(out.astype(int) - expected).max() <= 1


def test_sizes_that_do_not_fit_are_refused():
    band = [np.ones((2, 1), np.float32), np.zeros(2, np.int64), np.ones(2, np.int64), (0, 0)]
    rows = image.Band(4, *band)
    work = np.empty(image.bands_of_bytes_workspace(rows, 3) // 4, np.float32)
    good = {"x": pixels(4, 4, 3), "y": pixels(2, 2, 3), "workspace": work}
    for change in ({"x": pixels(4, 5, 3)}, {"y": pixels(3, 2, 3)}, {"y": pixels(2, 2, 1)}, {"workspace": work[1:]}):
        with pytest.raises(ValueError, match=f"{next(iter(change))}: expected"):
            image.bands_of_bytes(rows, rows, **{**good, **change})
    five = np.empty(image.bands_of_bytes_workspace(rows, 5) // 4, np.float32)
    with pytest.raises(ValueError, match="sizes or strides that contradict each other"):
        image.bands_of_bytes(rows, rows, pixels(4, 4, 5), pixels(2, 2, 5), five)
