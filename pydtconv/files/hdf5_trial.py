"""A trial reading of an HDF5 file in a process of its own, with limits of time and memory.

libhdf5 may not come to an end on damaged files, may ask for any amount of memory, or crash.  What a trial survives is
then read here.  This file is also the program of such a process, which therefore imports little.
"""

from __future__ import annotations

import faulthandler
import io
import math
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from typing import Any

#: seconds of processor time, and those for each byte of the file; bytes of memory besides 4 times the file's
_SECONDS, _SECONDS_A_BYTE, _BYTES = 10.0, 5e-8, 1 << 29
#: bytes that a text may have, and elements of data that is unpacked in the trial
_TEXT, _UNPACKED = 1 << 26, 1 << 27
#: deflate, shuffle, checksum, szip and LZF
BUILT_IN = (1, 2, 3, 4, 32000)
#: exit statuses of a trial: whatever went wrong is told; memory was not enough
_WRONG, _MEMORY = 1, 3
#: what the program writes before it reads, and after what it has seen
_BEGUN, _ENDED = b"pydtconv reads\n", b"pydtconv has read\n"
#: threads that hold no lock when a copy is made: those of a test runner
IDLE: set[threading.Thread] = set()
#: the module whose thread a progress bar leaves behind, which looks at bars now and then
_WATCHES_BARS = "tqdm._monitor"
#: in the place of a status that nobody can tell
_UNKNOWN = -signal.SIGCHLD


def look(file: Any) -> None:
    """Reads what a reader may follow: groups, texts of attributes, data in chunks."""
    import h5py

    with h5py.File(file, "r") as h5:
        waiting, seen = [h5.id], set()
        while waiting:
            place = waiting.pop()
            key = h5py.h5o.get_info(place)
            if (key.fileno, key.addr) in seen:
                continue
            seen.add((key.fileno, key.addr))
            for i in range(h5py.h5a.get_num_attrs(place)):
                _look_at_attribute(h5py, h5py.h5a.open(place, index=i))
            if isinstance(place, h5py.h5g.GroupID):
                for name in place:
                    if place.links.get_info(name).type == h5py.h5l.TYPE_HARD:
                        waiting.append(h5py.h5o.open(place, name))
            elif isinstance(place, h5py.h5d.DatasetID):
                _look_at_data(h5py.Dataset(place))


def _look_at_attribute(h5py: Any, attribute: Any) -> None:
    import numpy as np

    shape = attribute.shape
    if shape is None or attribute.dtype.kind not in "SO":
        return
    if np.prod(shape, dtype=float) * attribute.dtype.itemsize <= _TEXT:
        attribute.read(np.empty(shape, attribute.dtype))


def _look_at_data(data: Any) -> None:
    """Unpacks data in chunks, which lies in the file and is packed by what is built in (see hdf5.py)."""
    if data.shape is None or data.chunks is None or data.is_virtual or data.dtype.kind not in "biuf":
        return
    plist = data.id.get_create_plist()
    known = all(plist.get_filter(i)[0] in BUILT_IN for i in range(plist.get_nfilters()))
    chunk = math.prod(data.chunks) * data.dtype.itemsize
    if known and max(data.size * data.dtype.itemsize, chunk) <= _UNPACKED:
        for part in data.iter_chunks():
            data[part]


def problem_of(file: Any, size: int) -> str | None:
    """What is wrong with a file, by a trial; None where it can be read.

    file: a path or an object with `read` and `seek`, which stays where it is.
    """
    place = None if not hasattr(file, "tell") else file.tell()
    try:
        told = _forked(file, size) if _may_fork() else None
        if told is None:
            told = _in_another(file, size)
        if told is None:
            why = "an HDF5 file is read without a trial, for which no process can be started: damage may end this one"
            warnings.warn(why, RuntimeWarning, stacklevel=3)
        return told or None
    finally:
        if place is not None:
            file.seek(place)


def _limit(size: int, used: float, taken: int) -> None:
    """Limits this process to what a file of this size may need, beyond what it has used and taken."""
    seconds = int(used + _SECONDS + size * _SECONDS_A_BYTE) + 1
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    nbytes = taken + _BYTES + 4 * size
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    nbytes = nbytes if most == resource.RLIM_INFINITY else min(nbytes, most)
    resource.setrlimit(resource.RLIMIT_AS, (nbytes, nbytes))


def _taken() -> int:
    """Bytes of the address space that this process has taken; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _told(status: int, text: str) -> str:
    """What the end of a trial says; empty where the file may be read."""
    if status == _WRONG:
        return text or "it cannot be read"
    if status == _MEMORY:
        return "reading it takes more memory than a file of this size needs"
    if status < 0:
        name = signal.Signals(-status).name
        return {
            "SIGCHLD": "reading it ended early",
            "SIGXCPU": "reading it does not come to an end",
            "SIGKILL": "reading it does not come to an end",
        }.get(name, f"reading it ends with {name}")
    return ""


# --- a copy of this process -------------------------------------------------------------------------------------------
def _may_fork() -> bool:
    """Whether a copy of this process can read: where no other thread of Python's may hold a lock, and MPI is not on."""
    busy = {thread for thread in threading.enumerate() if type(thread).__module__ != _WATCHES_BARS} - IDLE
    alone = busy == {threading.main_thread()} == {threading.current_thread()}
    return sys.platform == "linux" and alone and "mpi4py.MPI" not in sys.modules


def _forked(file: Any, size: int) -> str | None:
    """What the trial has shown; None where there is none, or it stood still, as a copy may that finds a lock taken."""
    import h5py  # noqa: F401  before the copy is made

    taken = _taken()
    if not taken:
        return None
    try:
        inward, outward = os.pipe()
    except OSError:  # no files are left
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which are libraries' own and idle
            child = os.fork()
    except OSError:  # no memory for a copy of all that this process has
        os.close(inward)
        os.close(outward)
        return None
    if child == 0:
        status, text = _WRONG, ""
        try:
            faulthandler.disable()  # a crash here is an answer
            _limit(size, 0.0, taken)
            look(file)
            status = 0
        except MemoryError:
            status = _MEMORY
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"[:500]
        finally:
            try:
                os.write(outward, bytes([status]) + text.encode(errors="replace"))
            finally:
                os._exit(status)
    os.close(outward)
    with open(inward, "rb") as told:
        try:
            ended = _ended(child, 60 + 3 * (_SECONDS + size * _SECONDS_A_BYTE))
        except BaseException:
            _ended(child, 0)
            raise
        if ended is None:
            return None
        said = told.read()
    if ended == _UNKNOWN and said:
        ended = said[0]
    return _told(ended, said[1:].decode(errors="replace"))


def _ended(child: int, seconds: float) -> int | None:
    """The status of a process when it has ended; None where it has to be ended after so many seconds.

    _UNKNOWN where the program does not want to know how its children end (SIGCHLD), or has asked before.
    """
    start, pause = time.monotonic(), 1e-4
    try:
        while True:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() - start > seconds:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return None
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
    except (ChildProcessError, ProcessLookupError):
        return _UNKNOWN


# --- another program --------------------------------------------------------------------------------------------------
def _in_another(file: Any, size: int) -> str | None:
    """What the trial has shown; None where there is none."""
    interpreter, data = _interpreter(), b""
    if interpreter is None:
        return None
    path = os.fspath(file) if not hasattr(file, "read") else ""
    if not path:
        file.seek(0)
        data = file.read()
    # isolated, and without site: nothing that the environment or the installation adds is run, or prints
    command = [interpreter, "-I", "-S", __file__, path, str(size), *sys.path]
    try:
        done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=600)
    except subprocess.TimeoutExpired:
        return "reading it does not come to an end"
    except OSError:  # no files, processes or memory are left, or it may not be run
        return None
    _, began, rest = done.stdout.partition(_BEGUN)
    if not began:
        return None
    said, ended, _ = rest.rpartition(_ENDED)
    # where the program does not want to know how its children end, their status is 0
    status = said[-1] if ended else done.returncode if done.returncode < 0 else _UNKNOWN
    return _told(status, said[:-1].decode(errors="replace"))


def _interpreter() -> str | None:
    """Python's interpreter; None in a program that is frozen or embeds Python, which would start itself again."""
    path = sys.executable or ""
    known = re.fullmatch(r"(python|pypy)[\d.]*\w?(\.exe)?", os.path.basename(path).lower())
    return path if known and not getattr(sys, "frozen", False) else None


def main(path: str, size: str, *places: str) -> None:
    """The program: looks at a file, or at what comes from standard input, and writes what it has seen."""
    sys.path[:] = places
    source = path or io.BytesIO(sys.stdin.buffer.read())
    import h5py  # noqa: F401

    os.write(1, _BEGUN)
    _limit(int(size), time.process_time(), _taken() or 1 << 32)
    status, text = 0, ""
    try:
        look(source)
    except MemoryError:
        status = _MEMORY
    except Exception as error:
        status, text = _WRONG, f"{type(error).__name__}: {error}"[:500]
    os.write(1, text.encode(errors="replace") + bytes([status]) + _ENDED)


if __name__ == "__main__":
    main(*sys.argv[1:])
