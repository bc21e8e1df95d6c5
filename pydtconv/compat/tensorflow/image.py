"""`tf.image` and `tf.io`: reading and changing images, on arrays and on what is recorded."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from pydtconv import ops, random
from pydtconv.compat.tensorflow.arrays import array, bytes_of, name_of
from pydtconv.compat.tensorflow.image_resizing import METHODS, weights
from pydtconv.compat.tensorflow.open_extents import recorded
from pydtconv.compat.tensorflow.random import number_of
from pydtconv.files.pixels import decoded
from pydtconv.graph.ir.graph import Tensor
from pydtconv.support.random import next_seed

#: TensorFlow's images have their channels last, whatever `config.image_data_format` says of Keras's
CHANNELS_LAST = "channels_last"


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = "uint8",
    name: str | None = None,
    expand_animations: bool = True,
) -> Any:
    """An image (h, w, channels) from the bytes of a JPEG, PNG or BMP, or the images (frames, h, w, 3) of a GIF.

    channels: 1, 3, 4, or 0 for the file's.  dtype: uint8 (the high byte of wider pixels), uint16, or float32 from 0 to
    1.  expand_animations: False gives the first image of a GIF.
    """
    wanted = name_of(dtype)
    if wanted not in ("uint8", "uint16", "float32"):
        raise ValueError(f"decode_image: dtype: expected uint8, uint16 or float32, got {wanted}")
    if channels not in (None, 0, 1, 3, 4):
        raise ValueError(f"decode_image: channels: expected 0, 1, 3 or 4, got {channels!r}")
    found = decoded(bytes_of(contents), channels or 0, "uint8" if wanted == "uint8" else "uint16")
    if found.ndim == 4 and not expand_animations:
        found = found[0]
    return convert_image_dtype(found, wanted)


def decode_png(contents: Any, channels: int = 0, dtype: Any = "uint8", name: str | None = None) -> Any:
    """An image (h, w, channels) in uint8 or uint16 from the bytes of a PNG, JPEG, BMP, or GIF of one image."""
    if name_of(dtype) not in ("uint8", "uint16"):
        raise ValueError(f"decode_png: dtype: expected uint8 or uint16, got {name_of(dtype)}")
    found = decode_image(contents, channels, dtype)
    if len(found.shape) == 4 and len(found) > 1:
        raise ValueError(f"expected one image, got {len(found)}: use decode_gif or decode_image")
    return found[0] if len(found.shape) == 4 else found


def decode_gif(contents: Any, name: str | None = None) -> Any:
    """The images (frames, h, w, 3) of a GIF in uint8."""
    found = decode_image(contents, 3)
    return found if len(found.shape) == 4 else found[None]


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Any:
    """An image in another dtype: integers from 0 to their largest are floats from 0 to 1, and as much of others."""
    wanted, kind = np.dtype(name_of(dtype)), np.dtype(str(image.dtype))
    if wanted == kind:
        return array(image)
    if kind.kind in "iu" and wanted.kind in "iu":
        larger, smaller = np.iinfo(kind).max, np.iinfo(wanted).max
        if larger > smaller:
            return array(image // kind.type((larger + 1) // (smaller + 1)), wanted.name)
        return array(image, wanted.name) * wanted.type((smaller + 1) // (larger + 1))
    if kind.kind in "iu" and wanted.kind == "f":
        return array(image, wanted.name) / float(np.iinfo(kind).max)
    if kind.kind == "f" and wanted.kind in "iu":
        return array(np.clip(np.asarray(image) * (np.iinfo(wanted).max + 0.5), 0, np.iinfo(wanted).max), wanted.name)
    return array(image, wanted.name)


def resize(
    images: Any,
    size: Any,
    method: str = "bilinear",
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Any:
    """Images in another size, as floats; by the nearest pixels in their own dtype."""
    if preserve_aspect_ratio:
        h, w = images.shape[-3:-1]
        scale = min(size[0] / h, size[1] / w)
        size = round(h * scale), round(w * scale)
    extents = int(size[0]), int(size[1])
    x = array(images, "float32")
    if method in METHODS:
        rows, columns = (weights(method, x.shape[i - 3], extents[i], antialias) for i in range(2))
        return ops.einsum("ih,...hwc,jw->...ijc", rows, x, columns)
    resized = ops.image.resize(x, extents, interpolation=method, antialias=antialias, data_format=CHANNELS_LAST)
    return array(resized, str(images.dtype)) if method == "nearest" else resized


def resize_with_crop_or_pad(image: Any, target_height: int, target_width: int) -> Any:
    """An image cut in the middle, or zeros around it, to this size."""
    h, w = image.shape[-3:-1]
    top, left = max(h - target_height, 0) // 2, max(w - target_width, 0) // 2
    image = image[..., top : top + min(h, target_height), left : left + min(w, target_width), :]
    down, right = max(target_height - h, 0), max(target_width - w, 0)
    widths = [(0, 0)] * (len(image.shape) - 3) + [
        (down // 2, down - down // 2),
        (right // 2, right - right // 2),
        (0, 0),
    ]
    return array(ops.pad(image, tuple(widths)))


def central_crop(image: Any, central_fraction: float) -> Any:
    """The middle of an image."""
    h, w = image.shape[-3:-1]
    top, left = int((h - h * central_fraction) / 2), int((w - w * central_fraction) / 2)
    return image[..., top : h - top, left : w - left, :]


def crop_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Any:
    """The part of an image that begins there and has this size."""
    return image[..., offset_height : offset_height + target_height, offset_width : offset_width + target_width, :]


def flip_left_right(image: Any) -> Any:
    return ops.flip(image, axis=len(image.shape) - 2)


def flip_up_down(image: Any) -> Any:
    return ops.flip(image, axis=len(image.shape) - 3)


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Any:
    return array(ops.rot90(image, int(k), (len(image.shape) - 3, len(image.shape) - 2)))


def adjust_brightness(image: Any, delta: Any) -> Any:
    return _as_before(_as_float(image) + delta, image)


def adjust_contrast(images: Any, contrast_factor: Any) -> Any:
    x = _as_float(images)
    mean = ops.mean(x, axis=(len(x.shape) - 3, len(x.shape) - 2), keepdims=True)
    return _as_before((x - mean) * contrast_factor + mean, images)


def rgb_to_hsv(images: Any, name: str | None = None) -> Any:
    return ops.image.rgb_to_hsv(images, CHANNELS_LAST)


def hsv_to_rgb(images: Any, name: str | None = None) -> Any:
    return ops.image.hsv_to_rgb(images, CHANNELS_LAST)


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Any:
    hsv = rgb_to_hsv(_as_float(image))
    saturation = ops.clip(hsv[..., 1:2] * saturation_factor, 0, 1)
    return _as_before(hsv_to_rgb(ops.concatenate([hsv[..., :1], saturation, hsv[..., 2:]], axis=-1)), image)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Any:
    hsv = rgb_to_hsv(_as_float(image))
    hue = ops.mod(hsv[..., :1] + delta, 1.0)
    return _as_before(hsv_to_rgb(ops.concatenate([hue, hsv[..., 1:]], axis=-1)), image)


def _as_float(image: Any) -> Any:
    return convert_image_dtype(image, "float32")


def _as_before(changed: Any, image: Any) -> Any:
    return convert_image_dtype(changed, str(image.dtype))


def rgb_to_grayscale(images: Any, name: str | None = None) -> Any:
    weights = np.array([0.2989, 0.587, 0.114], "float32").reshape(3, 1)
    return _as_before(ops.matmul(_as_float(images), weights), images)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Any:
    return ops.concatenate([images] * 3, axis=-1)


_YUV = np.array([[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]])


def rgb_to_yuv(images: Any) -> Any:
    return ops.matmul(images, _YUV.astype("float32"))


def yuv_to_rgb(images: Any) -> Any:
    return ops.matmul(images, np.linalg.inv(_YUV).astype("float32"))


_YIQ = np.array([[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]])


def rgb_to_yiq(images: Any) -> Any:
    return ops.matmul(images, _YIQ.astype("float32"))


def yiq_to_rgb(images: Any) -> Any:
    return ops.matmul(images, np.linalg.inv(_YIQ).astype("float32"))


def per_image_standardization(image: Any) -> Any:
    """(x - mean) / max(deviation, 1 / sqrt(elements)) of each image."""
    x = array(image, "float32")
    axes = tuple(range(len(x.shape) - 3, len(x.shape)))
    count = float(np.prod(x.shape[-3:]))
    return (x - ops.mean(x, axis=axes, keepdims=True)) / ops.maximum(ops.std(x, axis=axes, keepdims=True), count**-0.5)


def psnr(a: Any, b: Any, max_val: float, name: str | None = None) -> Any:
    """Peak signal-to-noise ratio of each image."""
    axes = tuple(range(len(a.shape) - 3, len(a.shape)))
    error = ops.mean(ops.square(array(a, "float32") - array(b, "float32")), axis=axes)
    return 20 * np.log(max_val) / np.log(10.0) - ops.log(error) * (10 / np.log(10.0))


# --- at random --------------------------------------------------------------------------------------------------------


def _rng(seed: int | None) -> np.random.Generator:
    return np.random.default_rng(next_seed() if seed is None else seed)


def _drawn(image: Any, low: Any, high: Any, seed: int | None) -> Any:
    """A number from low up to high; where code is traced, another one each time that it runs."""
    return (
        random.uniform((), low, high, seed=seed) if isinstance(image, Tensor) else float(_rng(seed).uniform(low, high))
    )


def _chosen(image: Any, seed: int | None, axis: int) -> Any:
    if isinstance(image, Tensor):
        draws: Any = (*image.shape[:-3], 1, 1, 1)
        mirrored = ops.flip(image, len(image.shape) + axis)
        return ops.where(random.uniform(draws, seed=seed) < 0.5, mirrored, image)
    rng, x = _rng(seed), np.asarray(image)
    if x.ndim == 4:
        chosen = rng.random(len(x)) < 0.5
        return array(np.where(chosen[:, None, None, None], np.flip(x, axis), x))
    return array(np.flip(x, axis).copy() if rng.random() < 0.5 else x)


def random_flip_left_right(image: Any, seed: int | None = None) -> Any:
    return _chosen(image, seed, -2)


def random_flip_up_down(image: Any, seed: int | None = None) -> Any:
    return _chosen(image, seed, -3)


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Any:
    """A part of this size, at a random place."""
    x, extents = array(value), [int(n) for n in size]
    if len(extents) != len(x.shape) or any(n > extent for n, extent in zip(extents, x.shape, strict=True)):
        raise ValueError(f"random_crop: size: expected extents of at most {tuple(x.shape)}, got {extents}")
    rooms = [extent - n + 1 for n, extent in zip(extents, x.shape, strict=True)]
    if not isinstance(x, Tensor):
        rng = _rng(seed)
        starts = [int(rng.integers(room)) for room in rooms]
        return x[tuple(slice(a, a + n) for a, n in zip(starts, extents, strict=True))]
    for axis, room in enumerate(rooms):
        if room > 1:
            start = random.randint((), 0, room, seed=None if seed is None else seed + axis)
            x = ops.take(x, start + np.arange(extents[axis], dtype="int32"), axis)
    return x


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Any:
    return adjust_brightness(image, _drawn(image, *_around_zero("random_brightness", max_delta), seed))


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Any:
    return adjust_contrast(image, _drawn(image, *_factors("random_contrast", lower, upper), seed))


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Any:
    return adjust_saturation(image, _drawn(image, *_factors("random_saturation", lower, upper), seed))


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Any:
    return adjust_hue(image, _drawn(image, *_around_zero("random_hue", max_delta, 0.5), seed))


def _around_zero(name: str, max_delta: float, most: float = np.inf) -> tuple[float, float]:
    if not 0 <= max_delta <= most:
        raise ValueError(f"{name}: max_delta: expected a number from 0 to {most:g}, got {max_delta}")
    return -max_delta, max_delta


def _factors(name: str, lower: float, upper: float) -> tuple[float, float]:
    if not 0 <= lower < upper:
        raise ValueError(f"{name}: lower, upper: expected 0 <= lower < upper, got {lower} and {upper}")
    return lower, upper


def stateless(function: Any) -> Any:
    """The function with two numbers as its seed, which give the same each time."""

    @functools.wraps(function)
    def of_seed(image: Any, *args: Any, seed: Any = None, **kwargs: Any) -> Any:
        others = args if seed is not None else args[:-1]
        return function(image, *others, seed=number_of(args[-1] if seed is None else seed), **kwargs)

    return of_seed


def image_table() -> dict[str, Any]:
    """The names of `tf.image`."""
    own = (
        convert_image_dtype, resize, resize_with_crop_or_pad, central_crop, crop_to_bounding_box, flip_left_right,
        flip_up_down, rot90, adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue, rgb_to_grayscale,
        grayscale_to_rgb, rgb_to_yuv, yuv_to_rgb, per_image_standardization, psnr, random_flip_left_right,
        random_flip_up_down, random_crop, random_brightness, random_contrast, random_saturation, random_hue,
        rgb_to_hsv, hsv_to_rgb, rgb_to_yiq, yiq_to_rgb,
    )  # fmt: skip
    table = {each.__name__: each for each in own}
    table |= recorded({name: each for name, each in table.items() if name.startswith("random_")})
    table |= {f"stateless_{name}": stateless(each) for name, each in table.items() if name.startswith("random_")}
    return table
