"""CIFAR-10: 60000 colour images of 32x32 pixels, 10 classes (A. Krizhevsky, 2009)."""

from __future__ import annotations

import numpy as np

from pydtconv.datasets.cifar import assemble, read_pickle, read_records
from pydtconv.datasets.source import Download, obtain

_NAMES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
FILES = (
    [f"cifar-10-batches-bin/{name}.bin" for name in _NAMES],
    [f"cifar-10-batches-py/{name}" for name in _NAMES],
    [f"cifar-10-batches-py-target/cifar-10-batches-py/{name}" for name in _NAMES],
)
_DOWNLOAD = Download(
    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    "cifar-10-batches-py-target",
    extract=True,
)

Split = tuple[np.ndarray, np.ndarray]


def load_data() -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)`: 50000 and 10000 images.

    x: uint8 (n, 32, 32, 3), 0 to 255; (n, 3, 32, 32) where channels_first is the default image format.
    y: uint8 (n, 1): airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck.
    Raises FileNotFoundError that says where to put which file, and ValueError for a damaged one.
    """
    files = obtain("CIFAR-10", FILES, [_DOWNLOAD])
    parts = [(read_records if path.suffix == ".bin" else read_pickle)(path, classes=10) for path in files]
    return assemble(parts[:-1], parts[-1])
