"""Functions that move the pixels of images: sizes, borders, affine and projective transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv.dtypes import FLOATING, name_of
from pydtconv.extents import check
from pydtconv.hooks import as_result
from pydtconv.images.steps import change, places
from pydtconv.ops.functions.arithmetic import clip, multiply
from pydtconv.ops.functions.operands import as_float, as_tensor, is_symbolic, is_watched
from pydtconv.ops.functions.shape import cast, get_item, moveaxis, pad, reshape, stack
from pydtconv.ops.functions.tables import elementwise, linalg, sampling
from pydtconv.ops.functions.tables.composed_products import tensordot
from pydtconv.ops.functions.tables.image_axes import axes_of, on_batches, order_of
from pydtconv.ops.functions.tables.image_filters import gaussian_blur
from pydtconv.ops.separable import Separable, moved

_RESIZING = {"bilinear": "linear", "nearest": "nearest", "bicubic": "bicubic", "lanczos3": "lanczos3"}
_RESIZING["lanczos5"] = "lanczos5"
_METHODS = {
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), "linear"),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), "cubic"),
    "lanczos3": "lanczos3",
    "lanczos5": "lanczos5",
}


def resize(
    images: Any,
    size: Sequence[int],
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str | None = None,
) -> Any:
    """Images of size (rows, columns); first cut or padded to its ratio where that is asked for.

    As Keras on TensorFlow and JAX: "bicubic" is Keys's kernel of a = -1/2 (PyTorch's is -3/4 without antialias), and
    weights have the sum 1, at the border, too.
    """
    if interpolation not in _RESIZING:
        raise ValueError(f"resize: interpolation: expected one of {', '.join(_RESIZING)}, got {interpolation!r}")
    if fill_mode != "constant":
        raise ValueError(f"resize: fill_mode: expected 'constant', got {fill_mode!r}")
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError("resize: expected crop_to_aspect_ratio or pad_to_aspect_ratio, got both")
    if len(size) != 2:
        raise ValueError(f"resize: size: expected (rows, columns), got {size!r}")
    check("resize: size", size, least=1)
    x = images if is_symbolic(images) else np.asarray(images)
    dtype = name_of(x.dtype)
    x = x if dtype in FLOATING else cast(x, "float32")
    axes = axes_of("resize", x, data_format)
    rows, columns = (x.shape[axis] for axis in axes)
    height, width = (int(extent) for extent in size)
    if crop_to_aspect_ratio:
        inner = (max(min(rows, int(columns * height / width)), 1), max(min(columns, int(rows * width / height)), 1))
        starts = [(rows - inner[0]) // 2, (columns - inner[1]) // 2]
        key = [slice(None)] * len(x.shape)
        for axis, start, extent in zip(axes, starts, inner, strict=True):
            key[axis] = slice(start, start + extent)
        x = get_item(x, tuple(key))
    elif pad_to_aspect_ratio:
        outer = (max(rows, int(columns * height / width)), max(columns, int(rows * width / height)))
        starts = [(outer[0] - rows) // 2, (outer[1] - columns) // 2]
        widths = [(0, 0)] * len(x.shape)
        for axis, start in zip(axes, starts, strict=True):
            widths[axis] = (start, start)
        x = pad(x, widths, "constant", fill_value)
    kind = _RESIZING[interpolation]
    smooth = antialias and kind != "nearest"
    y = Separable(axes, tuple(("resize", n, kind, smooth) for n in (height, width)))(x)
    if dtype in FLOATING:
        return y
    y = elementwise._FUNCTIONS["round"](y)
    return as_result(cast(clip(y, 0, 255) if dtype == "uint8" else y, dtype))


def scale_and_translate(
    images: Any,
    output_shape: Sequence[int],
    scale: Any,
    translation: Any,
    spatial_dims: Sequence[int],
    method: str,
    antialias: bool = True,
) -> Any:
    """Images under x * scale + translation along each of spatial_dims."""
    if method not in _METHODS:
        raise ValueError(f"scale_and_translate: method: expected one of {', '.join(_METHODS)}, got {method!r}")
    check("scale_and_translate: output_shape", tuple(output_shape), least=1)
    x = as_float(images)
    if any(is_symbolic(value) or is_watched(np.asarray(value)) for value in (scale, translation)):
        for i, d in enumerate(d % len(x.shape) for d in spatial_dims):
            weights = moved(x.shape[d], int(output_shape[d]), scale[i], translation[i], _METHODS[method], antialias)
            x = moveaxis(tensordot(cast(weights, name_of(x.dtype)), x, [[1], [d]]), 0, d)
        return x
    filters = [
        ("move", int(output_shape[d]), float(s), float(t), _METHODS[method], bool(antialias))
        for d, s, t in zip(spatial_dims, np.asarray(scale), np.asarray(translation), strict=True)
    ]
    return Separable(tuple(d % len(x.shape) for d in spatial_dims), tuple(filters))(x) if filters else x


def _window(name: str, extent: int, before: Any, after: Any, target: Any) -> tuple[int, int, int]:
    """before, after and target of one axis from two of them."""
    given = [value is not None for value in (before, after, target)]
    if sum(given) != 2:
        raise ValueError(f"{name}: expected two of before, after and target for each axis, got {sum(given)}")
    if any(value is not None and int(value) < 0 for value in (before, after, target)):
        raise ValueError(f"{name}: expected numbers of 0 or more, got {before}, {after} and {target}")
    if target is None:
        return int(before), int(after), extent
    gap = (int(target) - extent) * (1 if name == "pad_images" else -1)
    before = gap - int(after) if before is None else int(before)
    return before, gap - before, int(target)


def crop_images(
    images: Any,
    top_cropping: int | None = None,
    left_cropping: int | None = None,
    bottom_cropping: int | None = None,
    right_cropping: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: str | None = None,
) -> Any:
    """Images without outer rows and columns; of top, bottom and target_height two are given, of columns, too."""
    x = as_tensor(images)
    axes = axes_of("crop_images", x, data_format)
    key = [slice(None)] * len(x.shape)
    sides = ((top_cropping, bottom_cropping, target_height), (left_cropping, right_cropping, target_width))
    for axis, side in zip(axes, sides, strict=True):
        before, after, _ = _window("crop_images", x.shape[axis], *side)
        if min(before, after) < 0 or before + after >= x.shape[axis]:
            raise ValueError(f"crop_images: {before} and {after} leave nothing of {x.shape[axis]} pixels")
        key[axis] = slice(before, x.shape[axis] - after)
    return get_item(x, tuple(key))


def pad_images(
    images: Any,
    top_padding: int | None = None,
    left_padding: int | None = None,
    bottom_padding: int | None = None,
    right_padding: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: str | None = None,
) -> Any:
    """Images with rows and columns of zeros; of top, bottom and target_height two are given, of columns, too."""
    x = as_tensor(images)
    axes = axes_of("pad_images", x, data_format)
    widths = [(0, 0)] * len(x.shape)
    sides = ((top_padding, bottom_padding, target_height), (left_padding, right_padding, target_width))
    for axis, side in zip(axes, sides, strict=True):
        before, after, _ = _window("pad_images", x.shape[axis], *side)
        if min(before, after) < 0:
            raise ValueError(f"pad_images: expected paddings of 0 or more, got {before} and {after}")
        widths[axis] = (before, after)
    return pad(x, widths)


def affine_transform(
    images: Any,
    transform: Any,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: float = 0,
    data_format: str | None = None,
) -> Any:
    """Images whose pixel (x, y) comes from ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), k = c0 x + c1 y + 1.

    transform: (a0, a1, a2, b0, b1, b2, c0, c1), one or one for each image; c0 and c1 are not used, as in Keras.
    """
    order = order_of("affine_transform", interpolation)
    transforms = multiply(reshape(as_float(transform), (-1, 8)), np.repeat(np.array([1, 0], "float32"), [6, 2]))
    return on_batches(
        "affine_transform",
        images,
        data_format,
        lambda x: sampling.transform(x, transforms, order, fill_mode, fill_value),
    )


def homography(start: Any, end: Any, stack: Callable[..., Any] = np.stack, solve: Any = np.linalg.solve) -> Any:
    """The projective transforms (n, 8) that take `end` to `start`, corners (n, 4, 2); stack, solve: for tensors."""
    rows, values = [], []
    for i in range(4):
        sx, sy, ex, ey = start[:, i, 0], start[:, i, 1], end[:, i, 0], end[:, i, 1]
        zero = ex * 0
        one = zero + 1
        rows += [
            stack([ex, ey, one, zero, zero, zero, -sx * ex, -sx * ey], -1),
            stack([zero, zero, zero, ex, ey, one, -sy * ex, -sy * ey], -1),
        ]
        values += [sx, sy]
    return solve(stack(rows, 1), stack(values, 1)[..., None])[..., 0]


def perspective_transform(
    images: Any,
    start_points: Any,
    end_points: Any,
    interpolation: str = "bilinear",
    fill_value: float = 0,
    data_format: str | None = None,
) -> Any:
    """Images whose corners start_points, (4, 2) or one for each image, go to end_points."""
    order = order_of("perspective_transform", interpolation)
    start, end = (cast(points, "float64") for points in (start_points, end_points))
    if tuple(start.shape) != tuple(end.shape) or tuple(start.shape[-2:]) != (4, 2):
        raise ValueError(f"perspective_transform: expected points of (4, 2), got {start.shape} and {end.shape}")
    start, end = (reshape(points, (-1, 4, 2)) for points in (start, end))
    transforms = homography(start, end, stack, linalg._FUNCTIONS["solve"])
    return on_batches(
        "perspective_transform",
        images,
        data_format,
        lambda x: sampling.transform(x, transforms, order, "constant", fill_value),
    )


def elastic_transform(
    images: Any,
    alpha: float = 20.0,
    sigma: float = 5.0,
    interpolation: str = "bilinear",
    fill_mode: str = "reflect",
    fill_value: float = 0.0,
    seed: Any = None,
    data_format: str | None = None,
) -> Any:
    """Images whose pixels are moved by smoothed noise (P. Simard et al., ICDAR 2003)."""
    from pydtconv.ops.functions.tables.random import generator

    order = order_of("elastic_transform", interpolation)
    rng = generator(seed)

    def function(x: Any) -> Any:
        if is_symbolic(x):
            raise NotImplementedError(
                "ops.image.elastic_transform: is here for arrays; there is RandomElasticTransform"
            )
        return elastic(x, [rng] * len(x), float(alpha), float(sigma), order, fill_mode, fill_value)

    return on_batches("elastic_transform", images, data_format, function)


def elastic(
    x: np.ndarray, rngs: Sequence[Any], alpha: float, sigma: float, order: int, fill_mode: str, fill_value: float
) -> np.ndarray:
    """See elastic_transform; a generator of random numbers for each image (n, h, w, c)."""
    found = [elastic_places(x.shape[1], x.shape[2], rng, alpha, sigma) for rng in rngs]
    return change(x, places(found, order, fill_mode, fill_value))


def elastic_places(height: int, width: int, rng: Any, alpha: float, sigma: float) -> np.ndarray:
    """Rows and columns (2, height, width) that smoothed noise moves pixels to."""
    size = int(6 * sigma) | 1
    noise = rng.standard_normal((2, height, width, 1)) * sigma
    noise = gaussian_blur(noise, (size, size), (sigma, sigma), "channels_last")[..., 0]
    rows, columns = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    return np.stack([rows + alpha * noise[1], columns + alpha * noise[0]])
