"""`Rows`: samples of an array in an order of their own, gathered where they are needed and not before."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv._ext import image
from pydtconv.dtypes import BFLOAT16, to_bits
from pydtconv.kernels.registry import IMAGES

#: bytes that are gathered at a time where they are converted on the way by NumPy
PIECE = 1 << 20
#: numbers up to which NumPy, on one thread, is as fast
_FEW = 1 << 18
_TYPES = {name: number for number, name in enumerate(image.SAMPLES)}


class Rows:
    """The rows `order` of an array (n, ...), by their numbers from 0 to n - 1.

    The input of a step is gathered from it straight to where it lies in the arena, so that no batch lies beside.  To
    NumPy it is an array, which is gathered anew each time.
    """

    def __init__(self, array: np.ndarray, order: np.ndarray) -> None:
        self.array = array
        self.order = order

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.order), *self.array.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, key: Any) -> np.ndarray:
        return np.asarray(self)[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("rows of an array: expected that they may be copied, got copy=False")
        found = self.array[self.order]
        return found if dtype is None else found.astype(dtype, copy=False)

    def copy_into(self, target: np.ndarray) -> None:
        """Gathers the rows into an array of their shape, in its dtype."""
        if target.dtype == self.dtype and target.flags.c_contiguous:
            # "clip" lets take write to the target without a buffer of its own; every number is in range
            np.take(self.array, self.order, axis=0, out=target, mode="clip")
            return
        row = max(self.array.nbytes // max(len(self.array), 1), 1)
        count = max(PIECE // row, 1)
        for start in range(0, len(self.order), count):
            part = slice(start, start + count)
            np.copyto(target[part], self.array[self.order[part]], casting="unsafe")


def copy_samples(value: Any, target: np.ndarray, dtype: str) -> None:
    """Copies an array, or `Rows`, to an array of its shape and of this dtype; bfloat16 is uint16, its bits.

    From most dtypes to those of images it is one pass in C, on several threads.
    """
    rows = value if isinstance(value, Rows) else None
    array = value if rows is None else rows.array
    in_c = target.size > (0 if dtype == BFLOAT16 else _FEW) and dtype in IMAGES and isinstance(array, np.ndarray)
    in_c = in_c and array.dtype.name in _TYPES and array.dtype.isnative
    if in_c and array.flags.c_contiguous and target.flags.c_contiguous:
        order = None if rows is None else np.ascontiguousarray(rows.order, np.int64)
        count = 1 if rows is None else len(target)
        kind = _TYPES[array.dtype.name]
        image.take_samples(kind, dtype, count, target.size // count, order, _bytes(array), _bytes(target))
    elif dtype == BFLOAT16:
        target[...] = to_bits(np.asarray(value))
    elif rows is not None:
        rows.copy_into(target)
    else:
        np.copyto(target, value, casting="unsafe")


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)
