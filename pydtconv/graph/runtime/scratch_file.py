"""A file that parts of the arena are written to and read back from, by two threads, while steps run.

One thread writes, the other reads, each in the order in which it was asked.  The file has no name: it is unlinked when
it is opened, so that nothing of it is left behind however the process ends.  Its space is reserved before it is used.
Transfers go past the page cache where the file system can do that (O_DIRECT); where it cannot, the cache is told to
drop what has been written.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import queue
import sys
import tempfile
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pydtconv.kernels.base import Call, scratch

MIB = 1 << 20
PAGE = 4096
#: bytes that one call of the system transfers
CHUNK = 16 << 20
#: file systems whose files are memory
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")

#: times that a transfer is tried again which the disk has failed, and seconds before each
RETRIES, PAUSE = 3, 0.05
#: errors of a disk that may be gone the next time
PASSING = (errno.EIO, errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT, errno.EBUSY)

#: told name, begin and end of each transfer, in nanoseconds of `time.perf_counter_ns`, and whether it wrote
Observer = Callable[[str, int, int, bool], None]


class TransferError(OSError):
    """A transfer that failed, which breaks a step off.  undone: whether all variables are as they were before it."""

    undone = False


class _Opened:
    """An open file, shared with the threads that transfer.  seconds, nbytes: of transfers that had the disk alone.

    process: that has these threads; a child of it has the descriptor alone.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.process = os.getpid()
        self.direct = False
        self.observer: Observer | None = None
        self.queues: tuple[queue.SimpleQueue[_Job | None], ...] = (queue.SimpleQueue(), queue.SimpleQueue())
        self.busy = [0, 0]
        self.seconds = [0.0, 0.0]
        self.nbytes = [0, 0]
        self.threads: list[threading.Thread] = []

    def start(self) -> None:
        for number, name in enumerate(("reads", "writes")):
            thread = threading.Thread(target=self._serve, args=(number,), name=f"pydtconv {name}", daemon=True)
            thread.start()
            self.threads.append(thread)

    def _serve(self, number: int) -> None:
        while (job := self.queues[number].get()) is not None:
            other = self.busy[1 - number]
            self.busy[number] += 1
            start = time.perf_counter_ns()
            try:
                self._transfer(job, bool(number))
            except BaseException as error:  # raised where the transfer is waited for
                job.error = error
            stop = time.perf_counter_ns()
            self.busy[number] -= 1
            if not other and not self.busy[1 - number]:
                self.seconds[number] += (stop - start) * 1e-9
                self.nbytes[number] += job.array.nbytes
            if self.observer is not None:
                self.observer(job.name, start, stop, bool(number))
            job.done.set()
            del job

    def _transfer(self, job: _Job, writes: bool) -> None:
        """Tries a few times where the disk fails."""
        for _ in range(RETRIES):
            try:
                return transfer(self.descriptor, job.array, job.place, writes, not self.direct)
            except OSError as error:
                if error.errno not in PASSING:
                    raise
            time.sleep(PAUSE)
        return transfer(self.descriptor, job.array, job.place, writes, not self.direct)

    def close(self) -> None:
        if self.process == os.getpid():
            for each in self.queues:
                each.put(None)
            for thread in self.threads:
                if thread is not threading.current_thread():
                    thread.join()
        os.close(self.descriptor)


class _Job:
    """A transfer of one array, which a step begins time and again."""

    def __init__(self, array: np.ndarray, place: int, name: str) -> None:
        self.array = array
        self.place = place
        self.name = name
        self.done = threading.Event()
        self.error: BaseException | None = None
        self.pending = False


class ScratchFile:
    """A file without a name in a folder.  direct: whether transfers go past the page cache."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.nbytes = 0
        self.observer: Observer | None = None
        self._opened: _Opened | None = None
        self._close: weakref.finalize | None = None

    @property
    def direct(self) -> bool:
        return self._opened is not None and self._opened.direct

    def reserve(self, nbytes: int) -> None:
        """Opens the file and reserves space.  Raises OSError that names the folder, where it cannot have so much.

        A process that was forked since then has a file of its own.
        """
        if self._opened is not None and self._opened.process != os.getpid():
            self.close()
        if self._opened is None:
            _warn_of_memory(self.folder)
            try:
                opened = _Opened(_unnamed(self.folder))
            except OSError as error:
                raise told(error, f"offload: expected a folder that can be written to, got {self.folder!r}") from error
            self._close = weakref.finalize(self, opened.close)
            self._opened = opened
            opened.start()
            self.nbytes = 0
        if nbytes <= self.nbytes:
            return
        opened = self._opened
        try:
            _allocate(opened.descriptor, self.nbytes, nbytes - self.nbytes)
            if not self.nbytes:
                opened.direct = _go_direct(opened.descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                free = os.statvfs(self.folder)
                left = f", of which {free.f_bavail * free.f_frsize / MIB:.0f} MiB are free"
                os.ftruncate(opened.descriptor, self.nbytes)
            raise told(error, f"offload: expected {nbytes / MIB:.0f} MiB in {self.folder!r}{left}") from error
        self.nbytes = nbytes

    def bind(self, array: np.ndarray, place: int, writes: bool, name: str) -> tuple[Call, Call]:
        """What begins a transfer and returns at once, and what waits for it and raises what went wrong."""
        job = _Job(array, place, name)

        def start() -> None:
            opened = self._opened
            if opened is None:
                raise RuntimeError("scratch file: expected one with space reserved, got none")
            opened.observer = self.observer
            job.error = None
            job.done.clear()
            job.pending = True
            opened.queues[writes].put(job)

        def wait() -> None:
            if job.pending:
                job.done.wait()
                job.pending = False
                if job.error is not None:
                    error, job.error = job.error, None
                    what = f"offload: could not {name} in {self.folder!r}; the step was interrupted"
                    raise TransferError(*told(error, what).args) if isinstance(error, OSError) else error

        return start, wait

    def rates(self, least: int = 256 * MIB) -> tuple[float | None, float | None]:
        """Bytes per second of writing and of reading so far, where at least so many have been moved."""
        opened = self._opened
        if opened is None:
            return None, None
        read, write = (n / s if n >= least and s else None for n, s in zip(opened.nbytes, opened.seconds, strict=True))
        return write, read

    def close(self) -> None:
        """Ends the threads when they are done, and gives the space back."""
        if self._close is not None:
            self._close()
        self._opened, self._close, self.nbytes = None, None, 0


def transfer(descriptor: int, array: np.ndarray, place: int, writes: bool, cached: bool) -> None:
    """Writes an array of bytes to a place of a file, or reads it.  Raises OSError; also where the file ends early."""
    data, at = array.data, 0
    while at < len(data):
        part = data[at : at + CHUNK]
        count = os.pwrite(descriptor, part, place + at) if writes else os.preadv(descriptor, [part], place + at)
        if count <= 0:
            raise OSError(errno.EIO, f"expected {len(data)} bytes at {place} of the scratch file, got {at}")
        at += count
    if cached and hasattr(os, "posix_fadvise"):
        if writes:
            os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, place, len(data), os.POSIX_FADV_DONTNEED)


def told(error: OSError, what: str) -> OSError:
    """The same error, with words of what was expected."""
    return OSError(error.errno, f"{what}: {error.strerror or error}")


def _unnamed(folder: str) -> int:
    """A file of this folder that has no name, or loses it at once."""
    if hasattr(os, "O_TMPFILE"):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
    descriptor, path = tempfile.mkstemp(prefix=".pydtconv-", dir=folder)
    os.unlink(path)
    return descriptor


def _allocate(descriptor: int, start: int, nbytes: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, start, nbytes)
        return
    zeros = scratch(min(nbytes, CHUNK), PAGE)  # macOS
    zeros[:] = 0
    for at in range(0, nbytes, len(zeros)):
        transfer(descriptor, zeros[: nbytes - at], start + at, True, False)


def _go_direct(descriptor: int) -> bool:
    """Makes transfers go past the page cache, and tries it; returns whether they do."""
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, 48, 1)  # F_NOCACHE
        return True
    if not hasattr(os, "O_DIRECT"):
        return False
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    page = scratch(PAGE, PAGE)
    page[:] = 0
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_DIRECT)
        transfer(descriptor, page, 0, True, False)
        transfer(descriptor, page, 0, False, False)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
        return False
    return True


def file_system(folder: str) -> str:
    """The kind of file system that a folder is on, "" where the system does not tell."""
    path, best, kind = os.path.realpath(folder), "", ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, mount, found, *_ = line.split(" ")
            mount = mount.replace("\\040", " ")
            if (path == mount or path.startswith(mount.rstrip("/") + "/")) and len(mount) >= len(best):
                best, kind = mount, found
    return kind


def _warn_of_memory(folder: str) -> None:
    kind = file_system(folder)
    if kind in IN_MEMORY:
        text = f"offload: {folder!r} is a {kind}, whose files are memory: offloading to it saves none"
        warnings.warn(text, UserWarning, stacklevel=2)
