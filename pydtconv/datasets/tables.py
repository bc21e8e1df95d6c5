"""Tables of numbers, x (n, features) and y (n,) in an .npz file, as Keras lays them, in a training and a test part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.datasets.source import Download, obtain
from pydtconv.files.archives import Archive
from pydtconv.files.reading import BadFileError

Split = tuple[np.ndarray, np.ndarray]
ORIGIN = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"


def read(dataset: str, path: str, digest: str, features: int) -> Split:
    """x and y of the file, found or downloaded.  Raises FileNotFoundError, and BadFileError for another table."""
    (file,) = obtain(dataset, ([path],), [Download(ORIGIN + path, digest, path)])
    with Archive(file, "an .npz file with x and y") as archive:
        x, y = archive.array("x"), archive.array("y")
    _check(file, x, y, features)
    return x, y


def _check(file: Path, x: np.ndarray, y: np.ndarray, features: int) -> None:
    if x.ndim != 2 or x.shape[1] != features or y.shape != (len(x),):
        raise BadFileError(f"{file}: expected x (n, {features}) and y (n,), got {x.shape} and {y.shape}")


def shuffled(rng: np.random.RandomState, *arrays: np.ndarray) -> list[np.ndarray]:
    """Arrays in the order that Keras draws, whose seeds are for this generator."""
    order = np.arange(len(arrays[0]))
    rng.shuffle(order)
    return [array[order] for array in arrays]


def load(x: Any, y: Any, test_split: float) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """`(x_train, y_train), (x_test, y_test)`: the last ones are the test part.

    Raises ValueError unless test_split is from 0 to below 1.
    """
    if not 0 <= test_split < 1:
        raise ValueError(f"load_data: test_split: expected a number from 0 to below 1, got {test_split!r}")
    count = int(len(x) * (1 - test_split))
    return (x[:count], y[:count]), (x[count:], y[count:])
