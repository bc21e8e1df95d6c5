"""The IDX file format of MNIST and its kin, plain or compressed by gzip.

A file is a magic number of four bytes (0, 0, type code, number of dimensions), one big-endian 32-bit extent per
dimension and the elements in C order.  The type code of uint8, the only one here, is 8.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

_UINT8 = 8


def read_idx(path: Path, ndim: int) -> np.ndarray:
    """The uint8 array of a file.  Raises ValueError that names the file, the offset and what is wrong there."""
    data = _contents(path)
    header = 4 + 4 * ndim
    if len(data) < header:
        raise ValueError(f"{path}: expected a header of {header} bytes, the file ends at offset {len(data)}")
    if data[:4] != bytes((0, 0, _UINT8, ndim)):
        expected = bytes((0, 0, _UINT8, ndim)).hex(" ")
        raise ValueError(f"{path}: expected the magic number {expected} at offset 0, found {data[:4].hex(' ')}")
    shape = tuple(int(extent) for extent in np.frombuffer(data, ">u4", ndim, offset=4))
    size = int(np.prod(shape, dtype=np.int64))
    if len(data) != header + size:
        raise ValueError(
            f"{path}: expected {size} bytes of data from offset {header} for the shape {shape}, "
            f"the file ends at offset {len(data)} instead of {header + size}"
        )
    return np.frombuffer(data, np.uint8, size, offset=header).reshape(shape).copy()


def read_images_and_labels(paths: Sequence[Path]) -> tuple[np.ndarray, np.ndarray]:
    """(images, labels) of two files.  Raises ValueError when their numbers differ."""
    x, y = read_idx(paths[0], 3), read_idx(paths[1], 1)
    if len(x) != len(y):
        raise ValueError(f"{paths[0]} has {len(x)} images, but {paths[1]} has {len(y)} labels")
    return x, y


def _contents(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    with open(path, "rb") as raw:
        blocks = []
        try:
            with gzip.GzipFile(fileobj=raw) as file:
                while block := file.read(1 << 20):
                    blocks.append(block)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            done = sum(len(block) for block in blocks)
            raise ValueError(
                f"{path}: damaged gzip data near offset {raw.tell()} ({error}); {done} bytes could be unpacked"
            ) from error
    return b"".join(blocks)
