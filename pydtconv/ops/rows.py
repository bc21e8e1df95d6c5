"""How arrays are handed to kernels: as matrices of rows, as flat vectors, or as (outer, k, inner) around an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def rows_of(array: np.ndarray | None) -> Any:
    """The (rows, c) view of an array whose last axis is contiguous; None stays None.

    Raises ValueError where that would need a copy.
    """
    if array is None:
        return None
    channels = array.shape[-1] if array.ndim else 1
    view = array.reshape(-1, channels)
    apart = channels > 1 and view.strides[-1] != view.itemsize
    if apart or not np.may_share_memory(view, array):
        raise ValueError(
            f"an array of shape {array.shape} and strides {array.strides} is not a matrix of contiguous rows"
        )
    return view


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


def carve(workspace: np.ndarray, count: int, length: int, dtype: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """`count` vectors from the start of a workspace, each aligned to 64 bytes, and the rest of it."""
    nbytes = length * np.dtype(dtype).itemsize
    step = carved_bytes(1, length, dtype)
    return [workspace[i * step : i * step + nbytes].view(dtype) for i in range(count)], workspace[count * step :]


def carved_bytes(count: int, length: int, dtype: Any) -> int:
    """Bytes that `carve` takes."""
    return count * -(-length * np.dtype(dtype).itemsize // 64) * 64


def adds(accumulate: Sequence[bool], index: int) -> bool:
    """Whether a pass adds to dx[index]; an empty `accumulate` means that it adds nowhere."""
    return bool(accumulate[index]) if accumulate else False


def around(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """(outer, k, inner): the extents before, at and after an axis."""
    axis %= len(shape)
    outer = inner = 1
    for extent in shape[:axis]:
        outer *= extent
    for extent in shape[axis + 1 :]:
        inner *= extent
    return outer, shape[axis], inner


def check_axis(op: str, axis: int, rank: int) -> int:
    """axis counted from the front.  Raises ValueError when the rank has no such axis."""
    if not -rank <= axis < rank:
        raise ValueError(f"{op}: expected an axis in [{-rank}, {rank}), got axis={axis}")
    return axis % rank


def check_float(op: str, argument: str, dtype: str) -> None:
    """Raises ValueError unless dtype is float32 or float64."""
    if dtype not in ("float32", "float64"):
        raise ValueError(f"{op}: {argument} must be float32 or float64, got {dtype}")


def fits(shape: tuple[int | None, ...], wanted: tuple[int | None, ...]) -> bool:
    """Whether shapes are equal where both are known."""
    same = (a == b or a is None or b is None for a, b in zip(shape, wanted, strict=False))
    return len(shape) == len(wanted) and all(same)
