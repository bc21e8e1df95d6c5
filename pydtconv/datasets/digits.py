"""Handwritten digits that come with the package: 1797 grey images of 8x8 pixels, 10 classes.

`digits.npz` holds what scikit-learn's `load_digits` gives: the test part of "Optical Recognition of Handwritten Digits"
by E. Alpaydin and C. Kaynak (UCI Machine Learning Repository, 1998, https://doi.org/10.24432/C50P49), licensed under
Creative Commons Attribution 4.0 (https://creativecommons.org/licenses/by/4.0/).  Changed here: stored as uint8.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

_SIDE = 8
_WHITE = 16
_TEST_EVERY = 5

Split = tuple[np.ndarray, np.ndarray]


def load_data(image_size: int = _SIDE) -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)`: 1438 and 359 images, every fifth one is for testing.

    image_size: side to which images are enlarged by bilinear interpolation; 28 makes them look like MNIST's.
    x: uint8 (n, image_size, image_size), 0 to 255.  y: uint8 (n,), 0 to 9.
    Raises ValueError for an image_size below 8.
    """
    if not isinstance(image_size, int) or image_size < _SIDE:
        raise ValueError(f"digits.load_data: expected image_size to be an integer of 8 or more, got {image_size!r}")
    with np.load(Path(__file__).with_name("digits.npz")) as arrays:
        x, y = arrays["x"], arrays["y"]
    weights = _bilinear(_SIDE, image_size)
    x = np.rint(weights @ (x * (255 / _WHITE)) @ weights.T).astype(np.uint8)
    test = np.arange(len(y)) % _TEST_EVERY == _TEST_EVERY - 1
    return (x[~test], y[~test]), (x[test], y[test])


def _bilinear(old: int, new: int) -> np.ndarray:
    """(new, old): row i holds the weights of the old samples in new sample i; centres of pixels are aligned."""
    position = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    return np.maximum(0, 1 - np.abs(position[:, None] - np.arange(old)))
