"""Resident memory of this process."""

from __future__ import annotations

import ctypes
import mmap
import resource
import sys
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/status")


def resident(field: str) -> float:
    """VmRSS (now), VmHWM (the peak), or RssShmem (now, of memory that processes share) in MiB, from Linux's /proc."""
    return _field(_STATUS, field)


def proportional_shared() -> float:
    """MiB of the memory that processes share: each page counts by its part for each of them."""
    return _field(Path("/proc/self/smaps_rollup"), "Pss_Shmem")


def give_back(zeros: Any) -> None:
    """Takes the pages of an array of zeros out of memory, until they are touched again."""
    first = -(-zeros.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
    size = (zeros.ctypes.data + zeros.nbytes - first) // mmap.PAGESIZE * mmap.PAGESIZE
    if size > 0:
        ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), mmap.MADV_DONTNEED)


def forget_peak() -> None:
    """Lets the peak begin anew, from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def _field(path: Path, name: str) -> float:
    for line in path.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1024
    raise KeyError(name)


def peak() -> float:
    """The most that this program has had resident, in MiB.

    Not getrusage where Linux tells better: its figure begins with what the process was before it became this program.
    """
    if _STATUS.exists():
        return resident("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
