"""Batches of images of which each process reads its part alone: files that are larger than its memory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import replica
from pydtconv.support.dataset import PyDataset
from pydtconv.support.lazy_zeros import untouched

#: pixels that are compared between processes
_SEEN = 16


class WindowedArrays(PyDataset):
    """Batches of arrays that lie in files; where images are cut over processes, each reads its part alone.

    x, y: a path of a .npy file, which is mapped into memory; (path, name) of a data set in an HDF5 file; or what has a
    shape and a dtype and reads when it is sliced, as arrays of h5py, zarr and tifffile do.  The first axis counts
    samples.  y is cut where its axes behind the first are those of x's images, and may be None.
    A batch has the shape of whole images: memory that lies outside of this process's part is never touched, and so
    never taken from the system.

    Raises ValueError where the numbers of samples differ, and what `numpy.load` and h5py raise for files.
    """

    #: told to those who train: elements outside of this process's part are not there
    windowed = True

    def __init__(self, x: Any, y: Any = None, batch_size: int = 1) -> None:
        super().__init__()
        if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise ValueError(f"batch_size: expected an integer of 1 or more, got {batch_size!r}")
        self.x = _opened("x", x)
        self.y = None if y is None else _opened("y", y)
        if self.y is not None and self.x.shape[0] != self.y.shape[0]:
            raise ValueError(
                f"WindowedArrays: expected as many samples in y as in x, {self.x.shape[0]}, got {self.y.shape[0]}"
            )
        self.batch_size = int(batch_size)

    def __len__(self) -> int:
        return math.ceil(self.x.shape[0] / self.batch_size)

    def __getitem__(self, index: int) -> Any:
        return self.read_share(index, lambda count: slice(0, count))

    def digest(self) -> str:
        """A short number of shapes, dtypes, the size of a batch and a few pixels: equal where files are."""
        found = hashlib.blake2b(f"{self.batch_size}".encode(), digest_size=8)
        for array in (self.x, self.y):
            if array is not None:
                found.update(f"{tuple(array.shape)} {np.dtype(array.dtype)}".encode())
                for place in _places(array.shape[: len(self.x.shape) - 1]):
                    found.update(np.asarray(array[place]).tobytes())
        return found.hexdigest()

    def read_share(self, index: int, share: Callable[[int], slice]) -> Any:
        """This process's samples of a batch; `share` tells which of so many they are."""
        first = index * self.batch_size
        part = share(min(self.batch_size, self.x.shape[0] - first))
        rows = slice(first + part.start, first + part.stop)
        parts = [_read(array, rows, self.x.shape[1:-1]) for array in (self.x, self.y) if array is not None]
        return tuple(parts) if len(parts) > 1 else parts[0]


def _opened(name: str, source: Any) -> Any:
    if isinstance(source, (str, Path)):
        return np.load(source, mmap_mode="r", allow_pickle=False)
    if isinstance(source, tuple) and len(source) == 2:
        import h5py

        return h5py.File(source[0], "r")[source[1]]
    if not hasattr(source, "shape") or not hasattr(source, "dtype") or not source.shape:
        raise ValueError(f"{name}: expected a path, (path, name) or an array, got {type(source).__name__}")
    return source


def _places(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Some pixels of some samples: along a diagonal from the first one to the last one."""
    for i in range(_SEEN if min(shape) else 0):
        yield tuple(i * (extent - 1) // (_SEEN - 1) for extent in shape)


def _read(array: Any, rows: slice, spatial: Sequence[int]) -> np.ndarray:
    """Samples of an array; of images, this process's part, in memory for the whole of them."""
    partition = replica.current().partition
    if partition is None or tuple(array.shape[1 : len(spatial) + 1]) != tuple(spatial):
        return np.asarray(array[rows])
    where = (slice(None), *partition.window(tuple(spatial)))
    found = untouched((rows.stop - rows.start, *array.shape[1:]), array.dtype)
    found[where] = array[(rows, *where[1:])]
    return found
