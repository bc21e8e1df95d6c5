"""CIFAR-100: 60000 colour images of 32x32 pixels, 100 classes in 20 groups (A. Krizhevsky, 2009)."""

from __future__ import annotations

import numpy as np

from pydtconv.datasets.cifar import assemble, read_pickle, read_records
from pydtconv.datasets.source import Download, obtain

FILES = (
    ["cifar-100-binary/train.bin", "cifar-100-binary/test.bin"],
    ["cifar-100-python/train", "cifar-100-python/test"],
    ["cifar-100-python-target/cifar-100-python/train", "cifar-100-python-target/cifar-100-python/test"],
)
_LABELS = ("coarse", "fine")  # in the order of a record's label bytes
_DOWNLOAD = Download(
    "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
    "cifar-100-python-target",
    extract=True,
)

Split = tuple[np.ndarray, np.ndarray]


def load_data(label_mode: str = "fine") -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)`: 50000 and 10000 images.

    label_mode: "fine" for the 100 classes, "coarse" for the 20 groups.
    x: uint8 (n, 32, 32, 3), 0 to 255; (n, 3, 32, 32) where channels_first is the default image format.
    y: uint8 (n, 1).
    Raises ValueError for another label_mode or a damaged file, FileNotFoundError that says where to put which file.
    """
    if label_mode not in _LABELS:
        raise ValueError(f"cifar100.load_data: expected label_mode 'fine' or 'coarse', got {label_mode!r}")
    parts, classes = [], 100 if label_mode == "fine" else 20
    for path in obtain("CIFAR-100", FILES, [_DOWNLOAD]):
        if path.suffix == ".bin":
            parts.append(read_records(path, len(_LABELS), _LABELS.index(label_mode), classes))
        else:
            parts.append(read_pickle(path, f"{label_mode}_labels", classes))
    return assemble(parts[:1], parts[1])
