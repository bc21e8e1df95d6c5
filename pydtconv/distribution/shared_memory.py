"""Memory that all processes see: where they all run on one host, gradients need not be sent."""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path

import numpy as np

from pydtconv.distribution.communicator import Communicator

_FOLDER = Path("/dev/shm")
#: a process's counters lie in a cache line of their own
_COUNTERS = 8


class SharedRows:
    """One row for each process, and its counters; zeros at first.  Each writes its own, and reads those of others.

    rows: (processes, n).  counters: (processes, 8), int64; see `publish` and `least` of pydtconv._ext.wire.
    """

    def __init__(self, file: mmap.mmap, processes: int, size: int, dtype: str) -> None:
        whole = np.frombuffer(file, np.uint8)
        length = _row_bytes(size, dtype)
        self.counters = whole[: _header_bytes(processes)].view(np.int64)[: processes * _COUNTERS]
        self.counters = self.counters.reshape(processes, _COUNTERS)
        rows = whole[_header_bytes(processes) :].reshape(processes, length)
        self.rows = rows.view(dtype)[:, :size]


def shared_rows(communicator: Communicator, size: int, dtype: str) -> SharedRows | None:
    """Rows of so many elements, which every process must ask for; None in all of them where one cannot have them.

    So it is where MPI tells of more than one host, where there is no /dev/shm, and where that is full.
    """
    if not _on_one_host(communicator):
        return None
    what = "shared memory"
    name = _created(communicator.size) if communicator.rank == 0 else None
    name = communicator.broadcast_object(name, what)
    file = None if name is None else _opened(name, communicator, _row_bytes(size, dtype))
    everywhere = communicator.gather([file is not None], what).all()
    if name is not None and communicator.rank == 0:
        Path(name).unlink()
    return SharedRows(file, communicator.size, size, dtype) if everywhere and file is not None else None


def _on_one_host(communicator: Communicator) -> bool:
    here = communicator.comm.Split_type(communicator.mpi.COMM_TYPE_SHARED)
    alone = here.size == communicator.size
    here.Free()
    return bool(communicator.gather([alone], "the hosts of all ranks").all())


def _created(processes: int) -> str | None:
    """The name of a new file that holds the counters."""
    try:
        number, name = tempfile.mkstemp(prefix="pydtconv-", dir=_FOLDER)
    except OSError:
        return None
    try:
        os.posix_fallocate(number, 0, _header_bytes(processes))
    except OSError:
        Path(name).unlink()
        return None
    finally:
        os.close(number)
    return name


def _opened(name: str, communicator: Communicator, row_bytes: int) -> mmap.mmap | None:
    """The file, to which this process has added its row: memory near to it, if it has places nearer and farther."""
    header = _header_bytes(communicator.size)
    try:
        number = os.open(name, os.O_RDWR)
    except OSError:
        number = None
    try:
        if number is not None:
            os.posix_fallocate(number, header + communicator.rank * row_bytes, row_bytes)
    except OSError:
        if number is not None:
            os.close(number)
        number = None
    # all rows are there before the file is mapped
    if not communicator.gather([number is not None], "shared memory").all():
        if number is not None:
            os.close(number)
        return None
    assert number is not None
    try:
        return mmap.mmap(number, header + communicator.size * row_bytes)
    except OSError:
        return None
    finally:
        os.close(number)


def _header_bytes(processes: int) -> int:
    return _pages(processes * _COUNTERS * 8)


def _row_bytes(size: int, dtype: str) -> int:
    return _pages(size * np.dtype(dtype).itemsize)


def _pages(nbytes: int) -> int:
    """Rounded up to whole pages of memory, one at least."""
    return max(-(-nbytes // mmap.PAGESIZE), 1) * mmap.PAGESIZE
