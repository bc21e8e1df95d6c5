"""How arrays of a device are handed to kernels: as matrices of rows, as (outer, k, inner) around an axis, sliced."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.kernels.registry import MissingKernelError
from pydtconv.kernels.registry import register as _register

REALS = ("float32", "float64")
#: bytes that a thread moves at once (dtconv_cuda.h)
PACK = 16

#: codes of dtypes whose elements kernels find in bytes (numbers.h)
NUMBERS = {
    **{"int32": 0, "int64": 1, "float32": 2, "float64": 3, "int8": 4, "uint8": 5, "bool": 5},
    **{"int16": 6, "uint16": 7, "uint32": 8, "uint64": 9},
}


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


def numbers_of(array: Any) -> tuple[Any, int]:
    """A dense array of any numbers as kernels take it: its bytes, and the code of its dtype."""
    name = array.dtype.name
    if name not in NUMBERS:
        raise MissingKernelError(f"expected an array of one of {', '.join(NUMBERS)} on a GPU, got {name}")
    return array.reshape(-1).view(np.uint8), NUMBERS[name]


def strided(launcher: Any, array: Any, shape: Sequence[int], strides: Sequence[int]) -> Any:
    """A view of a dense array with other extents and strides, in elements; 0 repeats."""
    steps = tuple(step * array.itemsize for step in strides)
    return launcher.device.array(array.reshape(-1).view(np.uint8), 0, tuple(shape), array.dtype, steps)
