"""Functions of the neighbourhoods of pixels: smoothing, slopes, patches, similarity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.dtypes import name_of, real
from pydtconv.extents import check
from pydtconv.ops.functions.arithmetic import add, divide, multiply, subtract
from pydtconv.ops.functions.operands import as_float, as_padding, as_tensor, is_symbolic
from pydtconv.ops.functions.reduction import mean
from pydtconv.ops.functions.shape import cast, expand_dims, get_item, moveaxis, pad, squeeze, stack
from pydtconv.ops.functions.tables import rearranging
from pydtconv.ops.functions.tables.image_axes import axes_of, channels_are_last
from pydtconv.ops.separable import Separable
from pydtconv.serialization.budget import claim


def _gaussian(size: int, sigma: float) -> tuple[float, ...]:
    if is_symbolic(size) or is_symbolic(sigma):
        raise TypeError(f"gaussian_blur: kernel_size, sigma: expected numbers, got {size!r} and {sigma!r}")
    check("size of the filter", int(size), least=1)
    claim(64 * int(size), f"a filter of {size} numbers")
    return tuple(gaussian_weights(int(size), np.array([float(sigma)]))[0].tolist())


def gaussian_weights(size: int, sigmas: np.ndarray) -> np.ndarray:
    """Filters (n, size) of normal distributions; their sums are 1."""
    x = np.arange(size) - (size - 1) / 2
    weights: np.ndarray = np.exp(-0.5 * (x / sigmas[:, None]) ** 2)
    return weights / weights.sum(1, keepdims=True)


def gaussian_blur(
    images: Any,
    kernel_size: Sequence[int] = (3, 3),
    sigma: Sequence[float] = (1.0, 1.0),
    data_format: str | None = None,
) -> Any:
    """Images smoothed with a normal distribution, zeros outside."""
    x = as_float(images)
    axes = axes_of("gaussian_blur", x, data_format)
    vertical, horizontal = _gaussian(kernel_size[1], sigma[1]), _gaussian(kernel_size[0], sigma[0])
    return Separable(axes, (("filter", vertical), ("filter", horizontal)))(x)


def sobel_edges(images: Any, data_format: str | None = None) -> Any:
    """Slopes of images (n, h, w, c) along rows and columns, as a further last axis of 2."""
    x = as_float(images)
    axes = axes_of("sobel_edges", x, data_format)
    smooth, slope = ("filter", (1.0, 2.0, 1.0)), ("filter", (-1.0, 0.0, 1.0))
    return stack([Separable(axes, filters)(x) for filters in ((slope, smooth), (smooth, slope))], -1)


def _pairs(name: str, value: Any, count: int) -> tuple[int, ...]:
    several = isinstance(value, (list, tuple, np.ndarray)) and all(isinstance(v, (int, np.integer)) for v in value)
    if not (several or isinstance(value, (int, np.integer))):
        raise TypeError(f"{name}: expected one or {count} integers of 1 or more, got {value!r}")
    sizes = tuple(map(int, value)) if several else (int(value),) * count
    if len(sizes) != count or min(sizes) < 1:
        raise ValueError(f"{name}: expected one or {count} integers of 1 or more, got {value!r}")
    return sizes


def _patches(
    name: str, x: Any, size: Any, strides: Any, dilation: Any, padding: str, data_format: Any, rank: int
) -> Any:
    x = as_tensor(x)
    axes_of(name, x, data_format, rank)
    single, last = len(x.shape) == rank + 1, channels_are_last(data_format)
    size, dilation = _pairs(f"{name}: size", size, rank), _pairs(f"{name}: dilation_rate", dilation, rank)
    strides = size if strides is None else _pairs(f"{name}: strides", strides, rank)
    padding = as_padding(padding)
    if padding not in ("valid", "same"):
        raise ValueError(f"{name}: padding: expected 'valid' or 'same', got {padding!r}")
    x = expand_dims(x, 0) if single else x
    x = x if last else moveaxis(x, 1, -1)
    widths = [(0, 0)] * len(x.shape)
    if padding == "same":
        for d in range(rank):
            reach = (size[d] - 1) * dilation[d] + 1
            total = max((-(-x.shape[d + 1] // strides[d]) - 1) * strides[d] + reach - x.shape[d + 1], 0)
            widths[d + 1] = (total // 2, total - total // 2)
    y = rearranging._FUNCTIONS["_patches"](pad(x, widths), size, strides, dilation)
    y = y if last else moveaxis(y, -1, 1)
    return squeeze(y, 0) if single else y


def extract_patches(
    images: Any,
    size: Any,
    strides: Any = None,
    dilation_rate: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
) -> Any:
    """The windows of images as channels: (n, rows, columns, size * size * c); three numbers are for volumes."""
    rank = 3 if isinstance(size, (list, tuple, np.ndarray)) and len(size) == 3 else 2
    return _patches("extract_patches", images, size, strides, dilation_rate, padding, data_format, rank)


def extract_patches_3d(
    volumes: Any,
    size: Any,
    strides: Any = None,
    dilation_rate: Any = 1,
    padding: str = "valid",
    data_format: str | None = None,
) -> Any:
    """The windows of volumes (n, d, h, w, c) as channels."""
    return _patches("extract_patches_3d", volumes, size, strides, dilation_rate, padding, data_format, 3)


def ssim(
    image1: Any,
    image2: Any,
    max_val: float = 1.0,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    data_format: str | None = None,
) -> Any:
    """The structural similarity of each pair of images (Z. Wang et al., 2004)."""
    a, b = (cast(x, real(name_of(x.dtype))) for x in map(as_float, (image1, image2)))  # bfloat16 has no small variances
    axes = axes_of("ssim", a, data_format)
    single = len(a.shape) == 3
    weights = ("filter", _gaussian(filter_size, filter_sigma))
    half = filter_size // 2
    key = [slice(None)] * len(a.shape)
    for axis in axes:
        key[axis] = slice(half, a.shape[axis] - (filter_size - 1 - half))

    def smooth(x: Any) -> Any:
        return get_item(Separable(axes, (weights, weights))(x), tuple(key))

    mean_a, mean_b = smooth(a), smooth(b)
    product = multiply(mean_a, mean_b)
    squares = add(multiply(mean_a, mean_a), multiply(mean_b, mean_b))
    spread = subtract(add(smooth(multiply(a, a)), smooth(multiply(b, b))), squares)
    shared = subtract(smooth(multiply(a, b)), product)
    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    above = multiply(add(multiply(product, 2.0), c1), add(multiply(shared, 2.0), c2))
    ratio = divide(above, multiply(add(squares, c1), add(spread, c2)))
    return mean(ratio, None if single else tuple(range(1, len(a.shape))))
