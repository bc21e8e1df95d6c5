"""Arrays of zeros that take no memory before they are written."""

import ctypes
import mmap
import sys
from pathlib import Path

import numpy as np
import pytest

from pydtconv.support.lazy_zeros import untouched


def resident(array):
    """Bytes of an array that the system has given memory for, by mincore."""
    pages = -(-array.nbytes // mmap.PAGESIZE)
    found = (ctypes.c_ubyte * pages)()
    address = array.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(address), ctypes.c_size_t(array.nbytes), found) == 0
    return mmap.PAGESIZE * sum(each & 1 for each in found)


@pytest.mark.skipif(sys.platform != "linux" or not Path("/proc/self/status").exists(), reason="needs Linux's mincore")
def test_memory_that_was_used_before_is_not_taken_again():
    for _ in range(3):  # the allocator begins to keep blocks of this size, written ones
        block = np.ones(1 << 21)
        del block
    found = untouched((1, 1024, 1024), "float64")
    assert resident(found) == 0, "nothing has been written"
    found[0, :256] = 1
    assert resident(found) < found.nbytes // 2
    assert found.sum() == 256 * 1024


def test_shapes_and_types():
    assert untouched((2, 0, 3), "int32").shape == (2, 0, 3)
    found = untouched((2, 3), np.dtype("uint8"))
    assert found.dtype == np.uint8
    assert found.flags.c_contiguous
    assert not found.any()
    found[1, 2] = 7
    assert found[1, 2] == 7
