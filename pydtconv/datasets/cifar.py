"""The files of CIFAR-10 and CIFAR-100: the binary version (records) and the Python version (pickles).

A record of the binary version is one label byte (two in CIFAR-100: coarse, fine) and 3072 bytes, the red, green and
blue planes of a 32x32 image, row by row.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import config

_IMAGE = 3 * 32 * 32

#: images that are turned while they are in the cache
_BLOCK = 64
Split = tuple[np.ndarray, np.ndarray]


def read_records(path: Path, label_bytes: int = 1, label: int = 0) -> Split:
    """(images (n, 3, 32, 32), labels (n,)) of a binary file; label: which of the label bytes.

    Raises ValueError that names the file and the offset at which it ends too early.
    """
    record = label_bytes + _IMAGE
    data = np.fromfile(path, np.uint8)
    if not data.size or data.size % record:
        last = data.size // record
        raise ValueError(
            f"{path}: expected records of {record} bytes, the file ends at offset {data.size}, "
            f"{data.size - last * record} bytes into record {last}"
        )
    records = data.reshape(-1, record)
    return records[:, label_bytes:].reshape(-1, 3, 32, 32), records[:, label].copy()


class _ArraysOnly(pickle.Unpickler):
    """Unpickles what the files hold, arrays and containers, and refuses to run anything else."""

    _ALLOWED = ("numpy._reconstruct", "numpy.ndarray", "numpy.dtype", "numpy._frombuffer", "_codecs.encode")

    def find_class(self, module: str, name: str) -> Any:
        if f"{module.split('.')[0]}.{name}" in self._ALLOWED:
            return super().find_class(module.replace("numpy.core", "numpy._core"), name)
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into a file of CIFAR")


def read_pickle(path: Path, label_key: str = "labels") -> Split:
    """(images (n, 3, 32, 32), labels (n,)) of a file of the Python version.  Raises ValueError for a damaged one."""
    with open(path, "rb") as file:
        try:
            entries = _ArraysOnly(file, encoding="bytes").load()
            x = np.asarray(entries[b"data"], np.uint8).reshape(-1, 3, 32, 32)
            y = np.asarray(entries[label_key.encode()], np.uint8)
        except (EOFError, KeyError, ValueError, TypeError, io.UnsupportedOperation, pickle.UnpicklingError) as error:
            raise ValueError(f"{path}: damaged near offset {file.tell()}; {error}") from error
    return x, y


def assemble(train: Sequence[Split], test: Split) -> tuple[Split, Split]:
    """Joins the parts and gives them Keras's shapes: images in the default image format, labels (n, 1)."""
    return _keras_shapes(train), _keras_shapes([test])


def _keras_shapes(parts: Sequence[Split]) -> Split:
    y = np.concatenate([y for _, y in parts]).reshape(-1, 1)
    if config.image_data_format() != "channels_last":
        return np.concatenate([x for x, _ in parts]), y
    images = np.empty((len(y), 32, 32, 3), np.uint8)
    at = 0
    for x, _ in parts:
        for first in range(0, len(x), _BLOCK):
            block = x[first : first + _BLOCK]
            for channel in range(3):
                images[at : at + len(block), ..., channel] = block[:, channel]
            at += len(block)
    return images, y
