"""`tf.image`: patches of images, and images in others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.compat.tensorflow.arrays import array
from pydtconv.compat.tensorflow.image import CHANNELS_LAST, convert_image_dtype, resize


class ResizeMethod:
    """Names of the ways of resizing."""

    AREA = "area"
    BICUBIC = "bicubic"
    BILINEAR = "bilinear"
    GAUSSIAN = "gaussian"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    MITCHELLCUBIC = "mitchellcubic"
    NEAREST_NEIGHBOR = "nearest"


def extract_patches(
    images: Any, sizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str, name: Any = None
) -> Any:
    """The patches (n, rows, columns, pixels of a patch) of images; extents are those of all four axes."""
    spread = tuple(int(n) for n in rates[1:3])
    if spread[0] != spread[1]:
        raise NotImplementedError(f"tf.image.extract_patches: rates: expected two equal ones, got {list(rates)}")
    size, steps = tuple(int(n) for n in sizes[1:3]), tuple(int(n) for n in strides[1:3])
    return ops.image.extract_patches(images, size, steps, spread[0], padding.lower(), CHANNELS_LAST)


def pad_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Any:
    """An image with zeros around it: it begins there, and the whole has this size."""
    h, w = image.shape[-3:-1]
    below, right = target_height - offset_height - h, target_width - offset_width - w
    widths = [(0, 0)] * (len(image.shape) - 3) + [(offset_height, below), (offset_width, right), (0, 0)]
    if min(min(pair) for pair in widths) < 0:
        raise ValueError(
            f"pad_to_bounding_box: expected a box that holds {h}x{w} pixels from {offset_height, offset_width} on, "
            f"got {target_height}x{target_width}"
        )
    return ops.pad(image, tuple(widths))


def resize_with_pad(
    image: Any, target_height: int, target_width: int, method: str = "bilinear", antialias: bool = False
) -> Any:
    """An image as large as fits, with zeros around it."""
    h, w = image.shape[-3:-1]
    scale = min(target_height / h, target_width / w)
    size = max(int(h * scale), 1), max(int(w * scale), 1)
    resized = resize(image, size, method, antialias=antialias)
    places = int((target_height - h * scale) / 2), int((target_width - w * scale) / 2)
    return pad_to_bounding_box(resized, *places, target_height, target_width)


def total_variation(images: Any, name: str | None = None) -> Any:
    """The sum of the differences of neighbouring pixels, of each image."""
    axes = tuple(range(len(images.shape) - 3, len(images.shape)))
    down = images[..., 1:, :, :] - images[..., :-1, :, :]
    right = images[..., :, 1:, :] - images[..., :, :-1, :]
    return ops.sum(ops.abs(down), axis=axes) + ops.sum(ops.abs(right), axis=axes)


def image_gradients(image: Any) -> tuple[Any, Any]:
    """The differences to the next row, and to the next column, of images (n, h, w, c); 0 at the ends."""
    down = ops.pad(image[:, 1:] - image[:, :-1], ((0, 0), (0, 1), (0, 0), (0, 0)))
    return down, ops.pad(image[:, :, 1:] - image[:, :, :-1], ((0, 0), (0, 0), (0, 1), (0, 0)))


def sobel_edges(image: Any) -> Any:
    """Sobel's slopes along rows and columns: (n, h, w, c, 2)."""
    slope = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]], "float32")
    filters = np.stack([slope, slope.T], -1)[:, :, None]
    n, h, w, c = image.shape
    padded = ops.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)), "reflect")
    found = ops.depthwise_conv(padded, np.repeat(filters, c, axis=2), 1, "valid", CHANNELS_LAST)
    return ops.reshape(found, (-1 if n is None else n, h, w, c, 2))


def ssim(
    img1: Any,
    img2: Any,
    max_val: float,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Any:
    """The structural similarity of each pair of images."""
    if return_index_map:
        raise NotImplementedError("tf.image.ssim: return_index_map: expected False, got True: use ssim_multiscale")
    x, y = array(img1, "float32"), array(img2, "float32")
    return ops.image.ssim(x, y, float(max_val), filter_size, filter_sigma, k1, k2, CHANNELS_LAST)


def _luminance_and_contrast(x: Any, y: Any, window: np.ndarray, c1: float, c2: float) -> tuple[Any, Any]:
    """The two factors of structural similarity at each pixel that the window fits around."""
    filters = np.repeat(window[:, :, None, None], x.shape[-1], axis=2)

    def mean(images: Any) -> Any:
        return ops.depthwise_conv(images, filters, 1, "valid", CHANNELS_LAST)

    a, b = mean(x), mean(y)
    product, squares = 2.0 * a * b, ops.square(a) + ops.square(b)
    contrast = (2.0 * mean(x * y) - product + c2) / (mean(ops.square(x) + ops.square(y)) - squares + c2)
    return (product + c1) / (squares + c1), contrast


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: float,
    power_factors: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Any:
    """The similarity of each pair of images at several sizes, each half of the one before: Wang et al., 2003."""
    x, y = (convert_image_dtype(array(image), "float32") for image in (img1, img2))
    shape = tuple(x.shape[:-3])
    x, y = (ops.reshape(image, (-1, *image.shape[-3:])) for image in (x, y))
    if min(x.shape[1:3]) // 2 ** (len(power_factors) - 1) < filter_size:
        raise ValueError(f"ssim_multiscale: expected {filter_size} pixels or more of the smallest, got {x.shape[1:3]}")
    line = np.exp(-0.5 * np.square(np.arange(filter_size) - (filter_size - 1) / 2) / filter_sigma**2)
    window = (np.outer(line, line) / line.sum() ** 2).astype("float32")
    largest = float(max_val) if np.dtype(str(img1.dtype)).kind == "f" else max_val / np.iinfo(str(img1.dtype)).max
    found: Any = 1.0
    for i, power in enumerate(power_factors):
        if i:
            odd = tuple(n % 2 for n in x.shape[1:3])
            sides = ((0, 0), (0, odd[0]), (0, odd[1]), (0, 0))
            halves = (ops.pad(image, sides, "symmetric") if any(odd) else image for image in (x, y))
            x, y = (ops.average_pool(image, 2, 2, "valid", CHANNELS_LAST) for image in halves)
        light, contrast = _luminance_and_contrast(x, y, window, (k1 * largest) ** 2, (k2 * largest) ** 2)
        value = contrast if i < len(power_factors) - 1 else light * contrast
        found = found * ops.relu(ops.mean(value, axis=(1, 2))) ** float(power)
    return ops.reshape(ops.mean(found, axis=-1), shape)


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_indices: Any,
    crop_size: Any,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Any:
    """Boxes (y1, x1, y2, x2 from 0 to 1) of images, each of the image of its index, in one size."""
    x, boxes = array(image, "float32"), array(boxes, "float32")
    _, h, w, c = x.shape
    (y, y_in), (across, x_in) = (
        _sampled(boxes[:, i], boxes[:, i + 2], extent, int(crop_size[i])) for i, extent in enumerate((h, w))
    )
    first = ops.reshape(array(box_indices, "int32"), (-1, 1, 1)) * (h * w)
    pixels = ops.reshape(x, (-1, c))

    def at(rows: Any, columns: Any) -> Any:
        places = ops.expand_dims(rows, 2) * w + ops.expand_dims(columns, 1)
        return ops.take(pixels, first + ops.cast(places, "int32"), axis=0)

    if method == "nearest":
        found = at(ops.round(y), ops.round(across))
    else:
        (y0, y1), (x0, x1) = ((ops.floor(p), ops.ceil(p)) for p in (y, across))
        down, right = ops.reshape(y - y0, (*y.shape, 1, 1)), ops.reshape(across - x0, (across.shape[0], 1, -1, 1))
        above = at(y0, x0) * (1.0 - right) + at(y0, x1) * right
        below = at(y1, x0) * (1.0 - right) + at(y1, x1) * right
        found = above * (1.0 - down) + below * down
    inside = ops.logical_and(ops.expand_dims(y_in, 2), ops.expand_dims(x_in, 1))
    return ops.where(ops.expand_dims(inside, 3), found, float(extrapolation_value))


def _sampled(start: Any, end: Any, extent: int, count: int) -> tuple[Any, Any]:
    """Places of count pixels between start and end (of 0 to 1), and whether they are in the image: (boxes, count)."""
    start, end = ops.expand_dims(start, 1) * (extent - 1.0), ops.expand_dims(end, 1) * (extent - 1.0)
    steps = (
        np.arange(count, dtype="float32")[None] / max(count - 1, 1) if count > 1 else np.full((1, 1), 0.5, "float32")
    )
    places = start + (end - start) * steps
    inside = ops.logical_and(places >= 0, places <= extent - 1)
    return ops.clip(places, 0, extent - 1), inside


def adjust_gamma(image: Any, gamma: float = 1.0, gain: float = 1.0) -> Any:
    """gain * image ** gamma, of numbers from 0 to 1."""
    changed = gain * convert_image_dtype(image, "float32") ** gamma
    return convert_image_dtype(changed, str(image.dtype))


def transpose(image: Any, name: str | None = None) -> Any:
    """An image with rows and columns exchanged."""
    return ops.swapaxes(image, len(image.shape) - 3, len(image.shape) - 2)


def table() -> dict[str, Any]:
    """The names that stand here."""
    own = (
        ResizeMethod, extract_patches, pad_to_bounding_box, resize_with_pad, total_variation, image_gradients,
        sobel_edges, ssim, ssim_multiscale, crop_and_resize, adjust_gamma, transpose,
    )  # fmt: skip
    return {each.__name__: each for each in own}
