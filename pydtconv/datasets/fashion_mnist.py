"""Fashion-MNIST: 70000 grey images of clothing, 28x28 pixels, 10 classes (Zalando SE, MIT licence)."""

from __future__ import annotations

import numpy as np

from pydtconv.datasets.idx import read_images_and_labels
from pydtconv.datasets.mnist import IDX_FILES
from pydtconv.datasets.source import Download, obtain

_FOLDER = "fashion-mnist"
_URL = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
_MD5 = (
    "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "25c81989df183df01b3e8a0aad5dffbe",
    "bef4ecab320f06d8554ea6380940ec79",
    "bb300cfdad3c16e7a12a480ee83cd310",
)
FILES = ([f"{_FOLDER}/{name}" for name in IDX_FILES],)
_DOWNLOADS = [Download(_URL + name, md5, name, _FOLDER) for name, md5 in zip(IDX_FILES, _MD5, strict=True)]

Split = tuple[np.ndarray, np.ndarray]


def load_data() -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)`: 60000 and 10000 images.

    x: uint8 (n, 28, 28), 0 to 255.  y: uint8 (n,): T-shirt/top, trouser, pullover, dress, coat, sandal, shirt, sneaker,
    bag, ankle boot.
    Raises FileNotFoundError that says where to put which file, and ValueError for a damaged one.
    """
    files = obtain("Fashion-MNIST", FILES, _DOWNLOADS)
    return read_images_and_labels(files[:2]), read_images_and_labels(files[2:])
