"""The functions of `keras.preprocessing.image` that change one image, drawn by `np.random`, whose seed scripts set."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.files.images import array_to_img, img_to_array
from pydtconv.preprocessing.affine import affine_matrix, sample
from pydtconv.preprocessing.iterators import ImageIterator


def apply_affine_transform(
    x: Any,
    theta: float = 0,
    tx: float = 0,
    ty: float = 0,
    shear: float = 0,
    zx: float = 1,
    zy: float = 1,
    row_axis: int = 0,
    col_axis: int = 1,
    channel_axis: int = 2,
    fill_mode: str = "nearest",
    cval: float = 0.0,
    order: int = 1,
) -> Any:
    """The image turned (degrees), shifted (pixels), sheared (degrees) and zoomed about its middle."""
    image = np.moveaxis(x, (row_axis, col_axis, channel_axis), (0, 1, 2))
    matrix = affine_matrix(image.shape[0], image.shape[1], theta, tx, ty, shear, zx, zy)
    if matrix is None:
        return x
    found = sample(np.ascontiguousarray(image), matrix, fill_mode, cval, order)
    return np.moveaxis(found, (0, 1, 2), (row_axis, col_axis, channel_axis))


def _uniform(limit: float) -> float:
    return float(np.random.uniform(-limit, limit))  # noqa: NPY002


def random_rotation(
    x: Any, rg: float, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0, fill_mode: str = "nearest",
    cval: float = 0.0, interpolation_order: int = 1,
) -> Any:  # fmt: skip
    """Turned by up to rg degrees, both ways."""
    axes = row_axis, col_axis, channel_axis
    return apply_affine_transform(x, _uniform(rg), 0, 0, 0, 1, 1, *axes, fill_mode, cval, interpolation_order)


def random_shift(
    x: Any, wrg: float, hrg: float, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0,
    fill_mode: str = "nearest", cval: float = 0.0, interpolation_order: int = 1,
) -> Any:  # fmt: skip
    """Shifted by up to these shares of width and height."""
    shift = _uniform(hrg) * x.shape[row_axis], _uniform(wrg) * x.shape[col_axis]
    axes = row_axis, col_axis, channel_axis
    return apply_affine_transform(x, 0, *shift, 0, 1, 1, *axes, fill_mode, cval, interpolation_order)


def random_shear(
    x: Any, intensity: float, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0, fill_mode: str = "nearest",
    cval: float = 0.0, interpolation_order: int = 1,
) -> Any:  # fmt: skip
    """Sheared by up to so many degrees."""
    axes = row_axis, col_axis, channel_axis
    return apply_affine_transform(x, 0, 0, 0, _uniform(intensity), 1, 1, *axes, fill_mode, cval, interpolation_order)


def random_zoom(
    x: Any, zoom_range: Any, row_axis: int = 1, col_axis: int = 2, channel_axis: int = 0, fill_mode: str = "nearest",
    cval: float = 0.0, interpolation_order: int = 1,
) -> Any:  # fmt: skip
    """Zoomed by a factor for each axis from zoom_range, a pair."""
    if len(zoom_range) != 2:
        raise ValueError(f"random_zoom: zoom_range: expected two numbers, got {zoom_range!r}")
    low, high = zoom_range
    zx, zy = (1.0, 1.0) if low == high == 1 else np.random.uniform(low, high, 2)  # noqa: NPY002
    axes = row_axis, col_axis, channel_axis
    return apply_affine_transform(x, 0, 0, 0, 0, zx, zy, *axes, fill_mode, cval, interpolation_order)


def apply_channel_shift(x: Any, intensity: float, channel_axis: int = 0) -> Any:
    """The image and a number, cut off at the least and the greatest of the image."""
    return np.clip(x + intensity, np.min(x), np.max(x))


def random_channel_shift(x: Any, intensity_range: float, channel_axis: int = 0) -> Any:
    """Shifted by up to intensity_range."""
    return apply_channel_shift(x, _uniform(intensity_range), channel_axis)


def apply_brightness_shift(x: Any, brightness: float, scale: bool = True) -> Any:
    """Brightness times a factor, from 0 to 255."""
    from PIL import ImageEnhance

    image = ImageEnhance.Brightness(array_to_img(x, scale=scale)).enhance(brightness)
    return img_to_array(image)


def random_brightness(x: Any, brightness_range: Any, scale: bool = True) -> Any:
    """Brightness times a factor from brightness_range, a pair."""
    if len(brightness_range) != 2:
        raise ValueError(f"random_brightness: brightness_range: expected two numbers, got {brightness_range!r}")
    return apply_brightness_shift(x, float(np.random.uniform(*brightness_range)), scale)  # noqa: NPY002


def flip_axis(x: Any, axis: int) -> Any:
    """Mirrored along an axis."""
    return np.flip(x, axis)


def transform_matrix_offset_center(matrix: Any, x: int, y: int) -> Any:
    """A matrix (3, 3) about the middle of x rows and y columns, as Keras 2.3 counts it."""
    middle = np.array([[1, 0, x / 2 - 0.5], [0, 1, y / 2 - 0.5], [0, 0, 1]])
    return middle @ matrix @ np.linalg.inv(middle)


def table() -> dict[str, Any]:
    """The names."""
    own = (
        apply_affine_transform, apply_brightness_shift, apply_channel_shift, flip_axis, random_brightness,
        random_channel_shift, random_rotation, random_shear, random_shift, random_zoom, transform_matrix_offset_center,
    )  # fmt: skip
    from pydtconv.preprocessing.dataframes import DataFrameIterator

    return {**{each.__name__: each for each in own}, "DataFrameIterator": DataFrameIterator, "Iterator": ImageIterator}
