"""Images that are kept as they are decoded and resized: in memory, or in files that later runs find."""

from __future__ import annotations

import hashlib
import math
import os
import threading
import warnings
import zlib
from pathlib import Path

import numpy as np

from pydtconv.files.image_decoding import Decoder, Read
from pydtconv.files.whole_file import check_writable, write_alone
from pydtconv.support.machine import memory_available

#: bytes of the checksum that a file of the cache begins with
_SUM = 4


def cached(decoder: Decoder, count: int, where: str | os.PathLike[str], verbose: bool) -> Read:
    """A decoder that decodes each of so many files once.  where: "memory", or a folder.

    Says how many bytes that takes; raises MemoryError or OSError where fewer are left.
    """
    size = math.prod(decoder.shape)
    told = f"{count} images of {'x'.join(map(str, decoder.shape))} take {count * size / (1 << 20):.1f} MiB"
    if where == "memory":
        left = memory_available()
        if left is not None and count * size > left:
            raise MemoryError(f"cache: {told}, {left / (1 << 20):.1f} MiB of memory are left: name a folder")
        found: Read = _InMemory(decoder, count)
    else:
        folder = Path(where, hashlib.blake2b(repr(decoder).encode(), digest_size=8).hexdigest())
        there = sum(len(files) for _, _, files in os.walk(folder))
        check_writable(folder / "image", max(count - there, 0) * size)
        found = _InFolder(decoder, folder)
    if verbose:
        print(f"The cache ({os.fspath(where)}): {told}.")
    return found


class _InMemory:
    """Memory is taken from the system image by image.  A file is read once, even where it changes."""

    def __init__(self, decoder: Decoder, count: int) -> None:
        self._decoder = decoder
        self._places: dict[str, int] = {}
        self._pixels = np.empty((count, *decoder.shape), np.uint8)
        self._lock = threading.Lock()

    def __call__(self, path: str, out: np.ndarray) -> None:
        place = self._places.get(path)
        if place is not None:
            out[...] = self._pixels[place]
            return
        self._decoder(path, out)
        with self._lock:
            if path not in self._places:
                self._pixels[len(self._places)] = out
                self._places[path] = len(self._places)


class _InFolder:
    """A file for each image, by the path, size and time of its own file; whole or not there, whoever else writes."""

    def __init__(self, decoder: Decoder, folder: Path) -> None:
        self._decoder, self._folder, self._writes = decoder, folder, True

    def __call__(self, path: str, out: np.ndarray) -> None:
        file = self._file(path)
        if file is not None and _read(file, out):
            return
        self._decoder(path, out)
        if file is not None and self._writes:
            pixels = out.tobytes()
            try:
                write_alone(file, lambda to: to.write(_sum(pixels) + pixels), lasting=False)
            except OSError as error:
                self._writes = False
                warnings.warn(f"cache: NOT WRITTEN any more, decoding goes on: {error}", UserWarning, stacklevel=2)

    def _file(self, path: str) -> Path | None:
        try:
            facts = os.stat(path)
        except OSError:  # the decoder says what is wrong
            return None
        key = f"{os.path.abspath(path)}\0{facts.st_mtime_ns}\0{facts.st_size}"
        name = hashlib.blake2b(key.encode(errors="surrogateescape"), digest_size=16).hexdigest()
        return self._folder / name[:2] / name[2:]


def _read(file: Path, out: np.ndarray) -> bool:
    """Whether a file of the cache is there and whole: its pixels are in out then."""
    try:
        data = file.read_bytes()
    except OSError:
        return False
    if len(data) == _SUM + out.nbytes and data[:_SUM] == _sum(memoryview(data)[_SUM:]):
        out[...] = np.frombuffer(data, np.uint8, offset=_SUM).reshape(out.shape)
        return True
    warnings.warn(f"cache: {file} is damaged: its image is decoded again", UserWarning, stacklevel=2)
    return False


def _sum(pixels: bytes | memoryview) -> bytes:
    return zlib.crc32(pixels).to_bytes(_SUM, "little")
