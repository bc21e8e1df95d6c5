"""`tf.image`: patches of images, and images in others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv import ops
from pydtconv.cli.tensorflow.image import resize


class ResizeMethod:
    """Names of the ways of resizing."""

    AREA = "area"
    BICUBIC = "bicubic"
    BILINEAR = "bilinear"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    NEAREST_NEIGHBOR = "nearest"


def extract_patches(
    images: Any, sizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str, name: Any = None
) -> Any:
    """The patches (n, rows, columns, pixels of a patch) of images; extents are those of all four axes."""
    spread = tuple(int(n) for n in rates[1:3])
    if spread[0] != spread[1]:
        raise NotImplementedError(f"tf.image.extract_patches: rates: expected two equal ones, got {list(rates)}")
    size, steps = tuple(int(n) for n in sizes[1:3]), tuple(int(n) for n in strides[1:3])
    return ops.image.extract_patches(images, size, steps, spread[0], padding.lower())


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
    places = (target_height - size[0]) // 2, (target_width - size[1]) // 2
    return pad_to_bounding_box(resized, *places, target_height, target_width)


def total_variation(images: Any, name: str | None = None) -> Any:
    """The sum of the differences of neighbouring pixels, of each image."""
    axes = tuple(range(len(images.shape) - 3, len(images.shape)))
    down = images[..., 1:, :, :] - images[..., :-1, :, :]
    right = images[..., :, 1:, :] - images[..., :, :-1, :]
    return ops.sum(ops.abs(down), axis=axes) + ops.sum(ops.abs(right), axis=axes)


def table() -> dict[str, Any]:
    """The names that stand here."""
    own = ResizeMethod, extract_patches, pad_to_bounding_box, resize_with_pad, total_variation
    return {each.__name__: each for each in own}
