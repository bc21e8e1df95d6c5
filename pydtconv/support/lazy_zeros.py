"""Arrays of zeros of which only what is written takes memory."""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Sequence

import numpy as np


def untouched(shape: Sequence[int], dtype: np.dtype | str) -> np.ndarray:
    """Zeros, fresh from the system: `numpy.zeros` may take memory that was used before, and write all of it.

    Raises MemoryError where the system has none.
    """
    kind = np.dtype(dtype)
    nbytes = math.prod(shape) * kind.itemsize
    if not nbytes:
        return np.zeros(shape, kind)
    try:
        memory = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # what is read only is one page of zeros
    except OSError as error:
        raise MemoryError(f"Unable to allocate {nbytes / (1 << 20):.1f} MiB for an array of {kind}") from error
    return np.frombuffer(memory, kind).reshape(shape)


#: bytes of a large page; arrays of so many of them have such pages
_LARGE, _MANY = 2 << 20, 16


def page_of(array: np.ndarray) -> int:
    """Bytes of the pages in which an array's memory is best given back, and taken anew: large ones cost much less."""
    return _LARGE if array.nbytes >= _MANY * _LARGE else mmap.PAGESIZE


def forget(array: np.ndarray, part: slice, shared: bool = False, page: int = mmap.PAGESIZE) -> None:
    """Gives the memory of a part of a 1-D array back, but for pages that it has in common with others.

    The part reads as zeros then, or as what it held where the system cannot do this.
    shared: the array lies in memory of several processes, all of which lose the part.  page: bytes.
    """
    start = -(-(array.ctypes.data + part.start * array.itemsize) // page) * page
    stop = (array.ctypes.data + part.stop * array.itemsize) // page * page
    if start < stop:
        _advise("MADV_REMOVE" if shared else "MADV_DONTNEED", start, stop)


def set_pages(array: np.ndarray, page: int = mmap.PAGESIZE) -> None:
    """What is written of an array takes pages of so many bytes, small or large ones."""
    start = array.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    advice = "MADV_HUGEPAGE" if page > mmap.PAGESIZE else "MADV_NOHUGEPAGE"
    _advise(advice, start, array.ctypes.data + array.nbytes)


def _advise(name: str, start: int, stop: int) -> None:
    """On Linux; elsewhere such advice has other meanings."""
    if hasattr(mmap, "MADV_REMOVE"):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        advise(start, stop - start, getattr(mmap, name))
