"""Image files and arrays: load_img, img_to_array, array_to_img, save_img (they need Pillow)."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.dtypes import name_of
from pydtconv.files.pixels import FORMATS, FURTHER_FORMATS, WIDE, eight_bits, opened, pillow
from pydtconv.files.reading import open_regular
from pydtconv.files.whole_file import write_alone

_MODES = {"grayscale": "L", "rgba": "RGBA", "rgb": "RGB"}
_RESAMPLING = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")


def _format(data_format: str | None) -> str:
    data_format = config.image_data_format() if data_format is None else data_format
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"data_format: expected 'channels_last' or 'channels_first', got {data_format!r}")
    return data_format


def load_img(
    path: Any,
    color_mode: str = "rgb",
    target_size: Any = None,
    interpolation: str = "nearest",
    keep_aspect_ratio: bool = False,
) -> Any:
    """The image of a file (a path, or bytes in an io.BytesIO) as Pillow has it, in a mode and a size (rows, columns).

    Pixels of more than 8 bits: "grayscale" keeps them, as Keras does (the modes "I;16" and "I"); "rgb" and "rgba" have
    the high byte.  keep_aspect_ratio: the middle of the ratio of target_size is taken.

    Raises ValueError for other modes, and BadFileError (an OSError and a ValueError) for what is no image of BMP, GIF,
    JPEG, PNG, PPM, TIFF or WebP.
    """
    image_module = pillow()
    if color_mode not in _MODES:
        raise ValueError(f"load_img: color_mode: expected one of {', '.join(_MODES)}, got {color_mode!r}")
    if interpolation not in _RESAMPLING:
        raise ValueError(f"load_img: interpolation: expected one of {', '.join(_RESAMPLING)}, got {interpolation!r}")
    if isinstance(path, (str, Path)):
        with open_regular(path) as file:
            data = io.BytesIO(file.read())
    elif isinstance(path, io.BytesIO):
        data = path
    else:
        raise TypeError(f"load_img: path: expected a path or io.BytesIO, got {type(path).__name__}")
    image = opened(data, "the bytes" if data is path else str(path), FORMATS + FURTHER_FORMATS)
    if color_mode == "grayscale" and image.mode in WIDE:
        if image.mode not in ("I", "I;16"):
            image = image_module.fromarray(np.asarray(image).astype("<u2"))
    else:
        image = eight_bits(image, _MODES[color_mode])
    if target_size is None:
        return image
    size = (target_size[1], target_size[0])
    if image.size == size:
        return image
    resample = getattr(image_module.Resampling, interpolation.upper())
    if not keep_aspect_ratio:
        return image.resize(size, resample)
    width, height = image.size
    crop = (min(width, height * size[0] // size[1]), min(height, width * size[1] // size[0]))
    left, top = (width - crop[0]) // 2, (height - crop[1]) // 2
    return image.resize(size, resample, box=(left, top, left + crop[0], top + crop[1]))


def img_to_array(img: Any, data_format: str | None = None, dtype: Any = None) -> np.ndarray:
    """An image of Pillow as an array (rows, columns, channels), or with the channels first; floatx by default."""
    data_format = _format(data_format)
    x = np.asarray(img, dtype=name_of(dtype or config.floatx()))
    if x.ndim not in (2, 3):
        raise ValueError(f"img_to_array: expected an image of 2 or 3 dimensions, got shape {x.shape}")
    x = x if x.ndim == 3 else x[..., None]
    return x if data_format == "channels_last" else x.transpose(2, 0, 1)


def array_to_img(x: Any, data_format: str | None = None, scale: bool = True, dtype: Any = None) -> Any:
    """An array as an image of Pillow.  scale: the smallest value becomes 0, the largest 255."""
    image_module = pillow()
    data_format = _format(data_format)
    x = np.asarray(x, dtype=name_of(dtype or config.floatx()))
    if x.ndim != 3:
        raise ValueError(f"array_to_img: expected an image of 3 dimensions, got shape {x.shape}")
    x = x if data_format == "channels_last" else x.transpose(1, 2, 0)
    if scale:
        x = x - x.min()
        top = x.max()
        x = x / top * 255 if top else x * 255
    if x.shape[2] == 1:
        gray = x[..., 0]
        return image_module.fromarray(gray.astype("int32" if gray.max() > 255 else "uint8"))
    if x.shape[2] not in (3, 4):
        raise ValueError(f"array_to_img: expected 1, 3 or 4 channels, got {x.shape[2]}")
    return image_module.fromarray(x.astype("uint8"))


def save_img(
    path: Any, x: Any, data_format: str | None = None, file_format: str | None = None, scale: bool = True, **kwargs: Any
) -> None:
    """Writes an array as an image file, or to an open one; kwargs go to Pillow's save.

    A file is there whole or not at all.  Raises ValueError where neither file_format nor the name says which kind of
    image is meant, and OSError where it cannot be written.
    """
    image = array_to_img(x, data_format, scale)
    suffix = Path(str(path)).suffix.lower()
    if image.mode == "RGBA" and (file_format or suffix.lstrip(".")).lower() in ("jpg", "jpeg"):
        image = image.convert("RGB")
    file_format = "jpeg" if str(file_format).lower() == "jpg" else file_format  # as Pillow has it
    if not isinstance(path, (str, os.PathLike)):
        image.save(path, format=file_format, **kwargs)
        return
    kind = file_format or pillow().registered_extensions().get(suffix)
    if kind is None:
        raise ValueError(f"save_img: expected file_format, or a name with the suffix of an image, got {str(path)!r}")
    write_alone(Path(path), lambda file: image.save(file, format=kind, **kwargs))
