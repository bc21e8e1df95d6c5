"""How arrays of a device are handed to kernels: as matrices of rows, as (outer, k, inner) around an axis, sliced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pydtconv.kernels.registry import register as _register

REALS = ("float32", "float64")
#: bytes that a thread moves at once (dtconv_cuda.h)
PACK = 16


def register(*operators: type) -> Any:
    """Enters a kernel for GPUs, in float32 and float64."""
    return _register(*operators, device="gpu", dtypes=REALS)


def pixel_stride(array: Any) -> int:
    """Elements from one row of contiguous elements (a pixel's channels) to the next.

    Raises ValueError for an array that is no matrix of such rows.
    """
    channels, size = array.shape[-1], array.itemsize
    if channels > 1 and array.strides[-1] != size:
        raise ValueError(f"expected contiguous channels, got strides {array.strides} for shape {array.shape}")
    step, rows = None, 1
    for extent, stride in zip(array.shape[-2::-1], array.strides[-2::-1], strict=True):
        if extent == 1:
            continue
        if step is None:
            step = stride
        if stride != step * rows:
            raise ValueError(f"expected rows at equal distances, got strides {array.strides} for shape {array.shape}")
        rows *= extent
    return channels if step is None else step // size


def in_packs(*arrays: Any) -> bool:
    """Whether kernels may move 16 bytes of channels at once: all pixels of all arrays begin at a multiple of that."""
    return all(
        array.data.ptr % PACK == 0 and (pixel_stride(array) * array.itemsize) % PACK == 0
        for array in arrays
        if array is not None
    )


def rows_of(array: Any) -> Any:
    """The (rows, c) view of an array."""
    if array is None:
        return None
    found = array.reshape((-1, array.shape[-1]))
    if array.size and found.data.ptr != array.data.ptr:
        raise ValueError(f"expected rows at equal distances, got strides {array.strides} for shape {array.shape}")
    return found


def size_of(array: Any) -> tuple[int, int, int]:
    """Rows, channels and the elements from one row to the next."""
    channels = array.shape[-1]
    return math.prod(array.shape[:-1]), channels, pixel_stride(array)


def around(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """The extents before, at and after an axis."""
    axis %= len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def part(workspace: Any, start: int, shape: Sequence[int], dtype: Any, itemsize: int) -> Any:
    """An array in a workspace, from a byte on."""
    nbytes = math.prod(shape) * itemsize
    return workspace[start : start + nbytes].view(dtype).reshape(tuple(shape))


def aligned(nbytes: int) -> int:
    return -(-nbytes // 256) * 256
