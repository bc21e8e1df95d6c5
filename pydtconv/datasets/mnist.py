"""MNIST: 70000 grey images of handwritten digits, 28x28 pixels (Y. LeCun, C. Cortes, C. Burges)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pydtconv.datasets.idx import read_images_and_labels
from pydtconv.datasets.source import Download, obtain
from pydtconv.files.archives import Archive
from pydtconv.files.reading import BadFileError

IDX_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
FILES = (["mnist.npz"], ["mnist/mnist.npz"], [f"mnist/{name}" for name in IDX_FILES])
_ARRAYS = ("x_train", "y_train", "x_test", "y_test")
_DOWNLOAD = Download(
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
    "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
    "mnist.npz",
)

Split = tuple[np.ndarray, np.ndarray]


def load_data(path: str = "mnist.npz") -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)`: 60000 and 10000 images.

    path: the .npz file to look for, absolute or below the folders that `pydtconv.datasets` names; the four IDX files in
    mnist/ there, compressed or not, serve as well.
    x: uint8 (n, 28, 28), 0 to 255.  y: uint8 (n,), 0 to 9.
    Raises FileNotFoundError that says where to put which file, and ValueError for a damaged one.
    """
    files = obtain("MNIST", ([path], *FILES), [_DOWNLOAD])
    if len(files) == 1:
        return _read_npz(files[0])
    return read_images_and_labels(files[:2]), read_images_and_labels(files[2:])


def _read_npz(path: Path) -> tuple[Split, Split]:
    what = f"an .npz file with {', '.join(_ARRAYS)}"
    with Archive(path, what) as archive:
        x_train, y_train, x_test, y_test = (archive.array(name) for name in _ARRAYS)
    for part, x, y in (("train", x_train, y_train), ("test", x_test, y_test)):
        if x.ndim != 3 or y.ndim != 1 or not len(x) or len(x) != len(y) or y.dtype.kind not in "iu":
            raise BadFileError(
                f"{path}: expected as many images x_{part} (n, height, width) as labels y_{part} (n,), "
                f"got {x.dtype} {x.shape} and {y.dtype} {y.shape}"
            )
    return (x_train, y_train), (x_test, y_test)
