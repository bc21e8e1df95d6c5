"""Batches of image files, which threads decode together."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.files.file_batches import FileBatches, Share
from pydtconv.files.image_decoding import Decoder, Read
from pydtconv.support.workers import Submit


class ImageFolder(FileBatches):
    """Batches (x, y) of files: x float32 (n, height, width, channels) from 0 to 255, y by label_mode, or x alone."""

    image_size = property(lambda self: self._decoder.size)

    def __init__(
        self,
        file_paths: list[Path],
        numbers: np.ndarray | None,
        class_names: list[str],
        label_mode: str | None,
        decoder: Decoder,
        read: Read,
        batch_size: int | None,
        shuffle: bool,
        seed: int | None,
        on_error: str,
        workers: int,
        data_format: str | None,
    ) -> None:
        self._decoder, self._read, self._on_error, self._data_format = decoder, read, on_error, data_format
        settings = (decoder, data_format, on_error)
        super().__init__(file_paths, numbers, class_names, label_mode, batch_size, shuffle, seed, workers, settings)

    def _begin(self, index: int, files: list[str], submit: Submit, share: Share | None) -> Callable[[], Any]:
        height, width, channels = self._decoder.shape
        is_first = (self._data_format or config.image_data_format()) == "channels_first"
        x = np.empty((len(files), *((channels, height, width) if is_first else (height, width, channels))), np.float32)
        images = _Images(self._read, files, x.transpose(0, 2, 3, 1) if is_first else x)
        stops = self._on_error == "raise"
        parts = [submit(images.read, stops) for _ in range(min(self.workers, len(x)))]

        def read() -> Any:
            for part in parts:
                part.result()
            kept = images.kept(stops)
            if not kept and share is None:
                raise ValueError(f"no image of batch {index} could be read, the first is {files[0]}")
            return x if len(kept) == len(x) else x[kept], kept

        return read


class _Images:
    """Images of a batch that several threads make: each takes the next file until none is left.

    x: (n, height, width, channels), where the pixels of the n files go.
    """

    def __init__(self, read: Read, files: list[str], x: np.ndarray) -> None:
        self._read, self._left, self._x = read, deque(enumerate(files)), x
        self._errors: dict[int, ValueError] = {}

    def read(self, stops: bool) -> None:
        """The work of one thread.  stops: after a bad file no other one is begun."""
        pixels = np.empty(self._x.shape[1:], np.uint8)
        while self._left:
            try:
                place, file = self._left.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                self._read(file, pixels)
                self._x[place] = pixels
            except ValueError as error:
                self._errors[place] = error
                if stops:
                    self._left.clear()
            except BaseException:
                self._left.clear()
                raise

    def kept(self, stops: bool) -> list[int]:
        """The places of images that could be read; others are named by a warning, or the first by its error."""
        for place in sorted(self._errors):
            if stops:
                raise self._errors[place]
            warnings.warn(f"skipped {self._errors[place]}", UserWarning, stacklevel=5)
        return [place for place in range(len(self._x)) if place not in self._errors]
