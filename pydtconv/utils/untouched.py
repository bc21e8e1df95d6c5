"""Arrays of zeros of which only what is written or read takes memory."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence

import numpy as np


def untouched(shape: Sequence[int], dtype: np.dtype | str) -> np.ndarray:
    """Zeros, fresh from the system: `numpy.zeros` may take memory that was used before, and write all of it."""
    kind = np.dtype(dtype)
    nbytes = math.prod(shape) * kind.itemsize
    if not nbytes:
        return np.zeros(shape, kind)
    return np.frombuffer(mmap.mmap(-1, nbytes), kind).reshape(shape)
