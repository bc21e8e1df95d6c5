"""`tf.image` and `tf.io`: what is of JPEG files alone."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.compat.tensorflow.arrays import Array, array, bytes_of, scalar
from pydtconv.compat.tensorflow.files import encode_jpeg
from pydtconv.compat.tensorflow.image import convert_image_dtype, decode_image, stateless
from pydtconv.files.pixels import opened
from pydtconv.support.random import next_seed


def adjust_jpeg_quality(image: Any, jpeg_quality: int, dct_method: str = "", name: str | None = None) -> Any:
    """An image as a JPEG of this quality shows it."""
    pixels = np.asarray(convert_image_dtype(array(image), "uint8", saturate=True))
    return convert_image_dtype(decode_image(encode_jpeg(pixels, quality=int(jpeg_quality))), str(image.dtype))


def random_jpeg_quality(image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None) -> Any:
    """The same of a quality at random."""
    rng = np.random.default_rng(next_seed() if seed is None else seed)
    return adjust_jpeg_quality(image, int(rng.integers(min_jpeg_quality, max_jpeg_quality)))


def decode_and_crop_jpeg(
    contents: Any, crop_window: Sequence[int], channels: int = 0, ratio: int = 1, name: str | None = None, **kwargs: Any
) -> Any:
    """The part (y, x, h, w) of an image."""
    if ratio != 1:
        raise NotImplementedError(f"decode_and_crop_jpeg: ratio: expected 1, got {ratio}: use tf.image.resize")
    y, x, h, w = (int(n) for n in crop_window)
    return array(decode_image(contents, channels)[y : y + h, x : x + w])


def is_jpeg(contents: Any, name: str | None = None) -> Array:
    """Whether the bytes begin as those of a JPEG."""
    return scalar(np.bool_(bytes_of(contents).startswith(b"\xff\xd8\xff")))


def extract_jpeg_shape(contents: Any, output_type: Any = "int32", name: str | None = None) -> Any:
    """Height, width and channels."""
    image = opened(io.BytesIO(bytes_of(contents)), "the bytes", ("JPEG",))
    return array(np.asarray((image.height, image.width, len(image.getbands()))), output_type)


def of_io() -> dict[str, Any]:
    """The names of `tf.io`."""
    return {each.__name__: each for each in (decode_and_crop_jpeg, is_jpeg, extract_jpeg_shape)}


def table() -> dict[str, Any]:
    """The names that stand here."""
    own = adjust_jpeg_quality, random_jpeg_quality, decode_and_crop_jpeg, is_jpeg, extract_jpeg_shape
    return {each.__name__: each for each in own} | {"stateless_random_jpeg_quality": stateless(random_jpeg_quality)}
