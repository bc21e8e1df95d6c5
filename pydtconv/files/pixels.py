"""Pixels of image files: how they are opened, and which integers they are (they need Pillow).

Where 8 bits are asked for, wider pixels give their high byte, as TensorFlow's decoders have it; where 16 bits are asked
for, they give their full range, and 8 bits are spread to it: v * 257.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.files.reading import BadFileError

#: what is decoded, whatever a file is called: formats that call other programs (EPS) are not among them
FORMATS = ("BMP", "GIF", "JPEG", "PNG")
FURTHER_FORMATS = ("PPM", "TIFF", "WEBP")
#: the modes of Pillow for one channel of more than 8 bits
WIDE = ("I", "I;16", "I;16L", "I;16B", "I;16N")
_TIFF_BITS = 258  # the tag BitsPerSample
_LUMINANCE = (0.299, 0.587, 0.114)


def pillow() -> Any:
    """The module PIL.Image.  Raises ImportError that says how to install it."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("images need Pillow: pip install 'pydtconv[images]'") from None
    return Image


def opened(file: io.BytesIO, name: str, formats: Sequence[str] = FORMATS, draft: Any = None) -> Any:
    """The decoded image of a file in memory.  draft: (mode, size), by which a JPEG is decoded smaller.

    Raises BadFileError that names the file and where reading stopped.
    """
    image_module = pillow()
    try:
        image = image_module.open(file, formats=formats)
        if draft is not None:
            image.draft(*draft)
        image.load()
    except MemoryError:
        raise
    except Exception as error:  # decoders of damaged data raise all kinds
        unknown = isinstance(error, image_module.UnidentifiedImageError)
        reason = f"expected {', '.join(formats)}" if unknown else error
        size = file.getbuffer().nbytes
        raise BadFileError(
            f"{name}: no image that can be decoded, stopped near offset {file.tell()} of {size}: {reason}"
        ) from error
    if image.mode == "F":
        raise BadFileError(f"{name}: expected pixels that are integers, got floats")
    return image


def eight_bits(image: Any, mode: str) -> Any:
    """An image in the mode L, RGB or RGBA; of wider pixels the high byte."""
    if image.mode not in WIDE:
        if image.mode == "P" and "transparency" in image.info:
            image = image.convert("RGBA")  # Pillow warns of other modes
        return image if image.mode == mode else image.convert(mode)
    values = _unsigned(image)
    narrow = pillow().fromarray((values >> (_bits(image) - 8)).astype(np.uint8)).convert(mode)
    if mode == "RGBA":
        narrow.putalpha(pillow().fromarray((_alpha(values[..., None], image)[..., 0] >> 8).astype(np.uint8)))
    return narrow


def decoded(contents: bytes, channels: int, dtype: str, name: str = "the bytes") -> np.ndarray:
    """The pixels (h, w, channels) of a file, or (frames, h, w, 3) of a GIF, in uint8 or uint16.

    channels: 1, 3, 4, or 0 for those of the file.
    """
    image = opened(io.BytesIO(contents), name)
    if image.format == "GIF":
        frames = []
        for number in range(image.n_frames):
            image.seek(number)
            frames.append(np.asarray(image.convert("RGB")))
        return _in_channels(np.stack(frames), channels, image, dtype)
    wide = _unsigned(image)[..., None].astype(np.uint16) if image.mode in WIDE else _png_of_16_bits(contents)
    if wide is not None:
        pixels = _in_channels(wide, channels, image, "uint16")
        return pixels if dtype == "uint16" else (pixels >> 8).astype(np.uint8)
    mode = "RGBA" if channels == 4 else _mode_of(image)  # of RGBA, Pillow sets a transparent color
    pixels = np.asarray(eight_bits(image, mode))
    return _in_channels(pixels if pixels.ndim == 3 else pixels[..., None], channels, image, dtype)


def _mode_of(image: Any) -> str:
    """The mode of 8 bits that has the channels of the file."""
    if image.mode in ("1", "L"):
        return "L"
    if image.mode in ("P", "PA"):
        return "RGBA" if image.mode == "PA" or "transparency" in image.info else "RGB"
    return image.mode if image.mode in ("LA", "RGBA") else "RGB"


def _bits(image: Any) -> int:
    return int(image.tag_v2[_TIFF_BITS][0]) if image.format == "TIFF" else 16


def _unsigned(image: Any) -> np.ndarray:
    values = np.asarray(image).astype(np.int64)
    if values.min(initial=0) < 0:
        raise BadFileError(f"expected pixels of 0 or more, got {values.min()}")
    return values


def _png_of_16_bits(contents: bytes) -> np.ndarray | None:
    """The pixels of a PNG of 16 bits in several channels, of which Pillow keeps one byte: its decoder runs twice."""
    image = pillow().open(io.BytesIO(contents), formats=FORMATS)
    layout = image.tile[0][3] if image.format == "PNG" else ""
    if layout == "LA;16B":  # two bytes for each of two channels are four channels of a byte
        high, low = np.split(_pixels_of_tile(image, "RGBA", "RGBA").reshape(*image.size[::-1], 2, 2), 2, -1)
        high, low = high[..., 0], low[..., 0]
    elif layout in ("RGB;16B", "RGBA;16B"):
        high = _pixels_of_tile(image, image.mode, layout)
        again = pillow().open(io.BytesIO(contents), formats=FORMATS)
        low = _pixels_of_tile(again, again.mode, layout.replace("16B", "16L"))
    else:
        return None
    return high.astype(np.uint16) << 8 | low


def _pixels_of_tile(image: Any, mode: str, layout: str) -> np.ndarray:
    """An opened image as if its data had another layout of as many bytes."""
    image._mode = mode
    image.tile = [(*image.tile[0][:3], layout)]
    return np.asarray(image)


def _in_channels(pixels: np.ndarray, channels: int, image: Any, dtype: str) -> np.ndarray:
    """Pixels of 1 (gray), 2 (gray, alpha), 3 or 4 channels with so many, 0 for theirs, in uint8 or uint16."""
    if dtype == "uint16" and pixels.dtype == np.uint8:
        return _in_channels(pixels, channels, image, "uint8").astype(np.uint16) * 257
    if channels in (0, pixels.shape[-1]):
        return pixels
    color = pixels[..., :-1] if pixels.shape[-1] in (2, 4) else pixels
    if channels == 1:
        gray = color if color.shape[-1] == 1 else np.rint(color @ np.array(_LUMINANCE)[:, None])
        return gray.astype(dtype)
    color = np.repeat(color, 3 // color.shape[-1], -1)
    if channels == 3:
        return color
    alpha = pixels[..., -1:] if pixels.shape[-1] in (2, 4) else _alpha(pixels, image)
    return np.concatenate([color, alpha.astype(dtype)], -1)


def _alpha(pixels: np.ndarray, image: Any) -> np.ndarray:
    """Opacity (..., h, w, 1): 0 for the color that a PNG calls transparent, else the largest."""
    opaque = np.full((*pixels.shape[:-1], 1), 65535 if pixels.dtype != np.uint8 else 255)
    if image.format == "PNG" and "transparency" in image.info:
        opaque[(pixels == np.asarray(image.info["transparency"])).all(-1)] = 0
    return opaque


def encoded_png(pixels: np.ndarray) -> bytes:
    """The bytes of a PNG of pixels (h, w, 1 to 4) in uint8 or uint16, as its specification (ISO/IEC 15948) has them."""
    if pixels.dtype not in (np.uint8, np.uint16) or pixels.ndim != 3 or not 1 <= pixels.shape[-1] <= 4:
        raise ValueError(f"expected pixels (h, w, 1 to 4) in uint8 or uint16, got {pixels.shape} in {pixels.dtype}")
    height, width, channels = pixels.shape
    kind = (0, 4, 2, 6)[channels - 1]
    head = struct.pack(">IIBBBBB", width, height, 8 * pixels.itemsize, kind, 0, 0, 0)
    rows = pixels.astype(pixels.dtype.newbyteorder(">")).reshape(height, -1).view(np.uint8)
    chunks = {b"IHDR": head, b"IDAT": zlib.compress(np.insert(rows, 0, 0, 1).tobytes()), b"IEND": b""}
    body = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks.items()
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)
