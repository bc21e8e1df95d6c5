"""The IDX file format of MNIST and its kin, plain or compressed by gzip.

A file is a magic number of four bytes (0, 0, type code, number of dimensions), one big-endian 32-bit extent per
dimension and the elements in C order.  The type code of uint8, the only one here, is 8.
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.files.reading import BadFileError, check_unpacked, open_regular, parsing

_UINT8 = 8


def read_idx(path: Path, ndim: int) -> np.ndarray:
    """The uint8 array of a file.  Raises BadFileError that names the file, the offset and what is wrong there.

    The header is read first, and then no more than it says and a file of this size may unpack to.
    """
    with open_regular(path) as raw:
        packed = os.fstat(raw.fileno()).st_size
        with gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw as file:
            return _read(path, ndim, _Blocks(path, raw, file), packed)


def _read(path: Path, ndim: int, blocks: _Blocks, packed: int) -> np.ndarray:
    header = 4 + 4 * ndim
    data = blocks.take(header)
    if len(data) < header:
        raise BadFileError(f"{path}: expected a header of {header} bytes, the file ends at offset {len(data)}")
    if data[:4] != bytes((0, 0, _UINT8, ndim)):
        expected = bytes((0, 0, _UINT8, ndim)).hex(" ")
        raise BadFileError(f"{path}: expected the magic number {expected} at offset 0, found {data[:4].hex(' ')}")
    shape = tuple(int(extent) for extent in np.frombuffer(data, ">u4", ndim, offset=4))
    size = math.prod(shape)
    with parsing(path, "an IDX file"):
        check_unpacked(header + size, packed)
    elements = blocks.take(size)
    end = header + len(elements) + len(blocks.take(1 << 10))
    if end != header + size:
        raise BadFileError(
            f"{path}: expected {size} bytes of data from offset {header} for the shape {shape}, the file ends at "
            f"offset {end}{' or later' if end > header + size + 1000 else ''} instead of {header + size}"
        )
    return np.frombuffer(elements, np.uint8, size).reshape(shape).copy()


class _Blocks:
    """Takes bytes out of a file, plain or compressed, one block at a time."""

    def __init__(self, path: Path, raw: Any, file: Any) -> None:
        self.path, self.raw, self.file = path, raw, file
        self.done = 0

    def take(self, count: int) -> bytes:
        """So many bytes, fewer where the file ends before."""
        blocks: list[bytes] = []
        while count:
            try:
                block = self.file.read(min(count, 1 << 20))
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                done = self.done + sum(map(len, blocks))
                raise BadFileError(
                    f"{self.path}: damaged gzip data near offset {self.raw.tell()} ({error}); "
                    f"{done} bytes could be unpacked"
                ) from error
            if not block:
                break
            blocks.append(block)
            count -= len(block)
        taken = b"".join(blocks)
        self.done += len(taken)
        return taken


def read_images_and_labels(paths: Sequence[Path]) -> tuple[np.ndarray, np.ndarray]:
    """(images, labels) of two files.  Raises BadFileError when their numbers differ."""
    x, y = read_idx(paths[0], 3), read_idx(paths[1], 1)
    if len(x) != len(y):
        raise BadFileError(f"{paths[0]} has {len(x)} images, but {paths[1]} has {len(y)} labels")
    return x, y
