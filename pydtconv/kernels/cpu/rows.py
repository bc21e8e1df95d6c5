"""How arrays are handed to kernels: as matrices of rows, as flat vectors, or as (outer, k, inner) around an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.dtypes import BFLOAT16
from pydtconv.ops.base import Spec


def rows_of(array: np.ndarray | None) -> Any:
    """The (rows, c) view of an array whose last axis is contiguous; None stays None.

    Raises ValueError where that would need a copy.
    """
    if array is None:
        return None
    channels = array.shape[-1] if array.ndim else 1
    if array.size == 0:
        return array.reshape(math.prod(array.shape[:-1]), channels)
    view = array.reshape(-1, channels)
    apart = channels > 1 and view.strides[-1] != view.itemsize
    if apart or not np.may_share_memory(view, array):
        raise ValueError(
            f"an array of shape {array.shape} and strides {array.strides} is not a matrix of contiguous rows"
        )
    return view


def matrices(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Arrays of one shape as rows of contiguous elements: one row where both are dense."""
    if x.flags.c_contiguous and y.flags.c_contiguous:
        return x.reshape(1, -1), y.reshape(1, -1)
    return rows_of(x), rows_of(y)


def flat_of(array: np.ndarray | None) -> Any:
    """The flat view of a dense array; None stays None.  Raises ValueError where that would need a copy."""
    if array is None:
        return None
    if not array.flags.c_contiguous:
        raise ValueError(f"an array of shape {array.shape} and strides {array.strides} is not dense")
    return array.reshape(-1)


def bytes_of(array: np.ndarray | None) -> Any:
    """The memory of a dense array as bytes; None stays None."""
    return None if array is None else flat_of(array).view(np.uint8)


def spec_of(array: np.ndarray) -> Spec:
    """Shape and dtype of what an array holds; uint16 are the bits of bfloat16."""
    return Spec(tuple(array.shape), BFLOAT16 if array.dtype == np.uint16 else array.dtype.name)


def real_of(array: np.ndarray) -> np.dtype:
    """The dtype of parameters and statistics that go with an image; one of bfloat16 comes as uint16, its bits."""
    return np.dtype(np.float32) if array.dtype == np.uint16 else array.dtype


def carve(workspace: np.ndarray, count: int, length: int, dtype: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """`count` vectors from the start of a workspace, each aligned to 64 bytes, and the rest of it."""
    nbytes = length * np.dtype(dtype).itemsize
    step = carved_bytes(1, length, dtype)
    return [workspace[i * step : i * step + nbytes].view(dtype) for i in range(count)], workspace[count * step :]


def carved_bytes(count: int, length: int, dtype: Any) -> int:
    """Bytes that `carve` takes."""
    return count * -(-length * np.dtype(dtype).itemsize // 64) * 64


def around(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """(outer, k, inner): the extents before, at and after an axis."""
    axis %= len(shape)
    outer = inner = 1
    for extent in shape[:axis]:
        outer *= extent
    for extent in shape[axis + 1 :]:
        inner *= extent
    return outer, shape[axis], inner
