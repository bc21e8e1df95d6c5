"""The files of CIFAR-10 and CIFAR-100: the binary version (records) and the Python version (pickles).

A record of the binary version is one label byte (two in CIFAR-100: coarse, fine) and 3072 bytes, the red, green and
blue planes of a 32x32 image, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pydtconv import config
from pydtconv.datasets.pickles import load_entries
from pydtconv.files.reading import BadFileError, open_regular, parsing

_IMAGE = 3 * 32 * 32

#: images that are turned while they are in the cache
_BLOCK = 64
Split = tuple[np.ndarray, np.ndarray]


def read_records(path: Path, label_bytes: int = 1, label: int = 0, classes: int = 256) -> Split:
    """(images (n, 3, 32, 32), labels (n,)) of a binary file; label: which of the label bytes.

    Raises BadFileError that names the file and the offset at which it ends too early.
    """
    record = label_bytes + _IMAGE
    with open_regular(path) as file:
        data = np.fromfile(file, np.uint8)
    if not data.size or data.size % record:
        last = data.size // record
        raise BadFileError(
            f"{path}: expected records of {record} bytes, the file ends at offset {data.size}, "
            f"{data.size - last * record} bytes into record {last}"
        )
    records = data.reshape(-1, record)
    x, y = records[:, label_bytes:].reshape(-1, 3, 32, 32), records[:, label].copy()
    with parsing(path, f"labels of {classes} classes"):
        _check_labels(y, classes)
    return x, y


def read_pickle(path: Path, label_key: str = "labels", classes: int = 256) -> Split:
    """(images (n, 3, 32, 32), labels (n,)) of a file of the Python version.  Raises BadFileError for a damaged one."""
    with open_regular(path) as file:
        data = file.read()
    with parsing(path, f"{path.name}: damaged or no file of CIFAR"):
        entries = load_entries(data)
        x, y = entries[b"data"], entries[label_key.encode()]
        if isinstance(y, list) and all(type(label) is int for label in y):
            y = np.asarray(y)
        if not isinstance(x, np.ndarray) or x.dtype != np.uint8 or x.ndim != 2 or x.shape[1] != _IMAGE:
            raise BadFileError(f"data: expected uint8 (n, {_IMAGE}), got {getattr(x, 'dtype', type(x).__name__)}")
        if not isinstance(y, np.ndarray) or y.shape != (len(x),) or y.dtype.kind not in "iu":
            got = f"{y.dtype} {y.shape}" if isinstance(y, np.ndarray) else f"a {type(y).__name__} of others"
            raise BadFileError(f"{label_key}: expected {len(x)} integers, got {got}")
        _check_labels(y, classes)
        return x.reshape(-1, 3, 32, 32), y.astype(np.uint8)


def _check_labels(y: np.ndarray, classes: int) -> None:
    if len(y) and not 0 <= y.min() <= y.max() < classes:
        raise BadFileError(f"expected labels from 0 to {classes - 1}, got {y.min()} to {y.max()}")


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
