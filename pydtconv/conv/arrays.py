"""Arrays that convolutions take: how images may lie in memory, and errors that name the argument that does not fit."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pydtconv.conv.problem import ConvProblem


def pixel_stride(array: np.ndarray, name: str) -> int:
    """Elements from one pixel of an image (n, *spatial, c) to the next.

    Raises ValueError unless channels are contiguous and pixels evenly spaced and apart, as in an NHWC array or a
    channel slice: neither a broadcast array nor a window that slides over one is.
    """
    size = array.itemsize
    extents, strides = array.shape, array.strides
    axes = [axis for axis in range(array.ndim - 2, -1, -1) if extents[axis] > 1]
    step, count = strides[axes[0]] if axes else extents[-1] * size, 1  # bytes from pixel to pixel, pixels so far
    for axis in axes:
        if strides[axis] != step * count:
            step = -1
            break
        count *= extents[axis]
    if (extents[-1] > 1 and strides[-1] != size) or step % size or step < extents[-1] * size:
        raise ValueError(
            f"{name}: expected an NHWC array in C order or a slice of its channels, got strides {strides} for "
            f"shape {extents} of {array.dtype}"
        )
    return step // size


def as_planes(array: np.ndarray) -> np.ndarray:
    """An image (n, *spatial, c) of one to three axes, or filters, as a view of four dimensions: the first axes are one.

    The pixels of images are evenly spaced (`pixel_stride`), filters in C order.
    """
    extents = array.shape
    return array if array.ndim == 4 else array.reshape(prod(extents[:-3]), *extents[-3:])


def check_array(value: Any, name: str, shape: tuple[int, ...], dtype: str) -> None:
    """Raises TypeError or ValueError, naming the argument, unless value is an array of that shape and dtype."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name}: expected a numpy.ndarray, got {type(value).__name__}")
    if value.dtype != dtype:
        wanted = "bfloat16, of ml_dtypes or as uint16, its bits" if dtype == "uint16" else dtype
        raise ValueError(f"{name}: expected dtype {wanted}, got {value.dtype}")
    if value.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {value.shape}")
    if not value.flags.aligned:
        raise ValueError(f"{name}: expected an aligned array, got one at address {value.ctypes.data}")


def in_memory(value: Any) -> Any:
    """An array as the C library sees it: bfloat16 as uint16, its bits."""
    return value.view(np.uint16) if isinstance(value, np.ndarray) and value.dtype.name == "bfloat16" else value


def image_dtype(p: ConvProblem) -> str:
    """The dtype of images in memory."""
    return "uint16" if p.dtype == "bfloat16" else p.dtype


def check_dense(value: np.ndarray, name: str) -> None:
    """Raises ValueError unless the array is in C order."""
    if not value.flags.c_contiguous:
        raise ValueError(f"{name}: expected an array in C order, got strides {value.strides} for shape {value.shape}")


def check_output(value: np.ndarray, name: str, inputs: tuple[np.ndarray, ...]) -> None:
    """Raises ValueError unless the array can be written and shares no memory with an input."""
    if not value.flags.writeable:
        raise ValueError(f"{name}: expected a writable array, got a read-only one")
    for other in inputs:
        if shares_memory(value, other):
            raise ValueError(f"{name}: expected an array of its own, got one that overlaps an input")


def check_outputs(values: dict[str, np.ndarray]) -> None:
    """Raises ValueError naming the first of these arrays that shares memory with one before it."""
    for i, (name, value) in enumerate(values.items()):
        for other in list(values)[:i]:
            if shares_memory(value, values[other]):
                raise ValueError(f"{name}: expected an array of its own, got one that overlaps {other}")


def shares_memory(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether the arrays overlap; strides for which that takes long to find out count as if they did."""
    if not np.may_share_memory(first, second):
        return False
    try:
        return np.shares_memory(first, second, max_work=1_000_000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
