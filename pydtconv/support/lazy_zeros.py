"""Arrays of zeros of which only what is written takes memory."""

from __future__ import annotations

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
