"""The digits of the package."""

import numpy as np
import pytest

from pydtconv.datasets import digits


def test_shapes_dtypes_and_classes():
    (x_train, y_train), (x_test, y_test) = digits.load_data()
    assert x_train.shape == (1438, 8, 8)
    assert x_test.shape == (359, 8, 8)
    assert y_train.shape == (1438,)
    assert y_test.shape == (359,)
    assert {array.dtype for array in (x_train, y_train, x_test, y_test)} == {np.dtype("uint8")}
    assert x_train.max() == 255
    assert np.bincount(y_train).min() > 120
    assert np.bincount(y_test).min() > 15


def test_enlarged_images_keep_their_brightness_and_look():
    (small, _), _ = digits.load_data()
    (large, _), _ = digits.load_data(image_size=32)
    assert large.shape == (1438, 32, 32)
    assert np.allclose(small.mean(), large.mean(), rtol=0.05)
    blocks = large.reshape(-1, 8, 4, 8, 4).mean((2, 4))
    assert np.corrcoef(blocks.ravel(), small.ravel())[0, 1] > 0.97


@pytest.mark.parametrize("size", [7, 28.0, "28"])
def test_a_wrong_size_is_refused(size):
    with pytest.raises(ValueError, match="image_size to be an integer of 8 or more"):
        digits.load_data(image_size=size)


def test_the_same_images_as_scikit_learns():
    datasets = pytest.importorskip("sklearn.datasets")
    (x_train, y_train), (x_test, y_test) = digits.load_data()
    images, labels = datasets.load_digits(return_X_y=True)
    test = np.arange(len(labels)) % 5 == 4
    for part, x, y in ((~test, x_train, y_train), (test, x_test, y_test)):
        np.testing.assert_array_equal(y, labels[part])
        np.testing.assert_array_equal(x.reshape(len(y), 64), np.rint(images[part] * (255 / 16)))
