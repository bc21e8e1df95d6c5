"""Image files into arrays of one size: decoded by Pillow, and resized, while other threads run."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from pydtconv.files.pixels import eight_bits, opened, pillow
from pydtconv.files.reading import BadFileError, open_regular
from pydtconv.files.resampling import resize

#: the modes of Pillow, and channels
MODES = {"rgb": ("RGB", 3), "rgba": ("RGBA", 4), "grayscale": ("L", 1)}
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")
#: how many times the rows and columns that are wanted a JPEG is decoded with at least, by `reduced`; None: with all
REDUCED: dict[bool | str, int | None] = {"auto": 2, True: 1, False: None}

#: read(path, out): the pixels of a file, to out (height, width, channels) in uint8
Read = Callable[[str, np.ndarray], None]


@dataclass(frozen=True)
class Decoder:
    """Reads files: (path, out) as of `Read`.

    fit: "stretch", "crop" or "pad".  reduced: of REDUCED.
    """

    size: tuple[int, int]
    color_mode: str
    interpolation: str
    fit: str
    reduced: bool | str

    @property
    def shape(self) -> tuple[int, int, int]:
        """(height, width, channels)"""
        return (*self.size, MODES[self.color_mode][1])

    def __call__(self, path: str, out: np.ndarray) -> None:
        """Raises BadFileError that names the file and where reading stopped."""
        image_module = pillow()
        (height, width), (mode, _) = self.size, MODES[self.color_mode]
        times = REDUCED[self.reduced]
        draft = mode, None if times is None else (times * width, times * height)
        # decoders take sizes that a file claims from memory before they read: of data in memory they get what is there
        with _opened(path) as raw, io.BytesIO(raw.read()) as file:
            pixels = eight_bits(opened(file, path, draft=draft), mode)
        left = top = 0.0
        right, bottom = float(pixels.width), float(pixels.height)
        if self.fit == "pad":  # with black that is in no memory: it may be far more than the image
            scale = max(pixels.width / width, pixels.height / height)
            across, down = round(width * scale), round(height * scale)
            left, top = -float((across - pixels.width) // 2), -float((down - pixels.height) // 2)
            right, bottom = left + across, top + down
        elif self.fit == "crop":
            scale = min(pixels.width / width, pixels.height / height)
            left, top = (right - width * scale) / 2, (bottom - height * scale) / 2
            right, bottom = left + width * scale, top + height * scale
        weighed = mode == "RGBA" and self.interpolation != "nearest"  # colors count by their opacity
        if mode == "RGBA" and self.fit != "pad":
            resampling = getattr(image_module.Resampling, self.interpolation.upper())
            out[...] = np.asarray(pixels.resize((width, height), resampling, (left, top, right, bottom)))
            return
        whole = np.asarray(pixels.convert("RGBa") if weighed else pixels)
        resize(whole.reshape(*whole.shape[:2], -1), out, self.interpolation, (top, left, bottom, right))
        if weighed:
            out[...] = np.asarray(image_module.frombytes("RGBa", (width, height), out.tobytes()).convert("RGBA"))


def _opened(path: str) -> BinaryIO:
    """The file.  Raises BadFileError where it is a broken link, a pipe, or may not be read."""
    try:
        return open_regular(path)
    except BadFileError:
        raise
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):  # of the process, not of the file
            raise
        raise BadFileError(f"{path}: cannot be opened: {os.strerror(error.errno or 0)}") from error
