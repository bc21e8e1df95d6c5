"""Memory that all processes see: where they all run on one host, gradients need not be sent."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.distribution.mpi.hosts import Hosts

FOLDER = Path("/dev/shm")
_WHAT = "shared memory"
_PREFIX = "pydtconv-"
#: seconds after which a file that still has a name belongs to nobody
_LEFT = 600
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
        self._file = file

    def forget_pages(self) -> None:
        """Takes the pages out of this process's memory until it touches them again; their contents stay."""
        self._file.madvise(mmap.MADV_DONTNEED)


class NotSharedError(Exception):
    """Why processes have no memory that all of them see."""


class SeveralHostsError(NotSharedError):
    """MPI does not tell that all processes run on one host."""


def shared_rows(communicator: Communicator, size: int, dtype: str) -> SharedRows:
    """Rows of so many elements, which every process must ask for.

    Raises NotSharedError in all of them where one cannot have them: SeveralHostsError where MPI does not tell that they
    run on one host; otherwise with the system's reason, such as that /dev/shm is full.
    """
    if not on_one_host(communicator):
        raise SeveralHostsError("MPI does not tell that all ranks run on one host")
    rank, processes = communicator.rank, communicator.size
    name, number, file = "", None, None
    failure: OSError | None = None
    try:
        try:
            name = _created(processes) if rank == 0 else ""
        except OSError as error:
            failure = error
        _agree(failure, communicator)
        name = communicator.bcast_object(name, _WHAT)
        try:
            number = os.open(name, os.O_RDWR)
            # a row that its process adds is near to it, if memory has places nearer and farther
            row = _row_bytes(size, dtype)
            os.posix_fallocate(number, _header_bytes(processes) + rank * row, row)
        except OSError as error:
            failure = error
        _agree(failure, communicator)  # all rows are there before the file is mapped
        try:
            file = mmap.mmap(number or 0, _header_bytes(processes) + processes * row)
        except OSError as error:
            failure = error
        _agree(failure, communicator)
    finally:
        if number is not None:
            os.close(number)
        if rank == 0 and name:
            Path(name).unlink()
    assert file is not None
    return SharedRows(file, processes, size, dtype)


def rows_of_hosts(hosts: Hosts, everyone: Communicator, size: int, dtype: str) -> SharedRows:
    """Rows of this host's ranks.  Raises NotSharedError in the ranks of all hosts, where one cannot have them."""
    rows, reason = None, ""
    try:
        rows = shared_rows(hosts.local, size, dtype)
    except NotSharedError as error:
        reason = str(error).partition(": ")[2] or str(error)
    failed = everyone.allgather([rows is None], _WHAT)[:, 0]
    if failed.any():
        first = int(failed.argmax())
        raise NotSharedError(f"{FOLDER} on the host of rank {first}: {everyone.bcast_object(reason, _WHAT, first)}")
    assert rows is not None
    return rows


def _agree(failure: OSError | None, communicator: Communicator) -> None:
    """Raises NotSharedError in all processes, with the reason of the first one that has failed."""
    failed = communicator.allgather([failure is not None], _WHAT)[:, 0]
    if failed.any():
        first = int(failed.argmax())
        reason = communicator.bcast_object(failure and failure.strerror, _WHAT, first)
        raise NotSharedError(f"{FOLDER} on rank {first}: {reason}")


def on_one_host(communicator: Communicator) -> bool:
    """Whether MPI tells, on all processes, that they run on one host."""
    here = communicator.comm.Split_type(communicator.mpi.COMM_TYPE_SHARED)
    alone = here.size == communicator.size
    here.Free()
    return bool(communicator.allgather([alone], "the hosts of all ranks").all())


def _created(processes: int) -> str:
    """The name of a new file that holds the counters.  Raises OSError."""
    _sweep()
    number, name = tempfile.mkstemp(prefix=_PREFIX, dir=FOLDER)
    try:
        os.posix_fallocate(number, 0, _header_bytes(processes))
    except OSError:
        Path(name).unlink()
        raise
    finally:
        os.close(number)
    return name


def _sweep() -> None:
    """Takes away what processes that were killed in `shared_rows` have left: a file has its name for moments only."""
    for path in FOLDER.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = path.stat()
            if found.st_uid == os.geteuid() and time.time() - found.st_mtime > _LEFT:
                path.unlink()


def _header_bytes(processes: int) -> int:
    return _pages(processes * _COUNTERS * 8)


def _row_bytes(size: int, dtype: str) -> int:
    return _pages(size * np.dtype(dtype).itemsize)


def _pages(nbytes: int) -> int:
    """Rounded up to whole pages of memory, one at least."""
    return max(-(-nbytes // mmap.PAGESIZE), 1) * mmap.PAGESIZE
