"""How fast a disk writes, reads, and does both at once: measured for a moment and kept; trainings correct it."""

from __future__ import annotations

import os
import threading
import time

import numpy as np

from pydtconv.files.measurements import KeptFigures
from pydtconv.graph.runtime.scratch_file import CHUNK, MIB, PAGE, ScratchFile, file_system
from pydtconv.graph.schedule.transfers import Disk
from pydtconv.kernels.base import scratch

DISKS = KeptFigures("disks.json", "pydtconv speeds of disks")
#: bytes and seconds at most of a measurement in each direction
BYTES, SECONDS = 128 * MIB, 0.25

#: names of the disks that folders of this process were found on
_found: dict[str, str] = {}


def disk_of(folder: str) -> Disk:
    """The disk that a folder is on: as it was found before, else as it is measured now, in less than a second.

    Raises OSError where the folder cannot be written to.
    """
    known = _known(folder)
    if known is None:
        keep(folder, measure(folder))
        known = _known(folder)
    assert known is not None
    return known


def measured_anew(folder: str) -> Disk:
    """The disk as it is measured now, which is kept.  Raises OSError where the folder cannot be written to."""
    disk = measure(folder)
    keep(folder, disk)
    return disk


def measure(folder: str) -> Disk:
    """Writes and reads a file of up to 128 MiB in the folder."""
    file = ScratchFile(folder)
    file.reserve(PAGE)
    free = os.statvfs(folder)
    nbytes = min(BYTES, free.f_bavail * free.f_frsize // 4) // CHUNK * CHUNK or CHUNK
    try:
        file.reserve(nbytes)
        buffers = [scratch(CHUNK, PAGE) for _ in range(2)]
        for buffer in buffers:
            buffer[:] = 1
        _rate(file, buffers[1], nbytes, True)  # space that is reserved is slower when it is written first
        write, read = (_rate(file, buffers[kind], nbytes, bool(kind)) for kind in (1, 0))
        rates: list[float] = [0.0, 0.0]

        def work(kind: int) -> None:
            rates[kind] = _rate(file, buffers[kind], nbytes, bool(kind))

        threads = [threading.Thread(target=work, args=(kind,)) for kind in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        file.close()
    together = (rates[0] / read + rates[1] / write) / 2
    return Disk(write, read, min(max(together, 0.25), 1.0))


def _rate(file: ScratchFile, buffer: np.ndarray, nbytes: int, writes: bool) -> float:
    """Bytes per second."""
    begin, moved = time.perf_counter(), 0
    while moved < nbytes and (not moved or time.perf_counter() - begin < SECONDS):
        start, wait = file.bind(buffer, moved, writes, "measure")
        start()
        wait()
        moved += buffer.nbytes
    return moved / (time.perf_counter() - begin)


def keep(folder: str, disk: Disk) -> None:
    """Keeps the speeds of the disk that a folder is on."""
    name = _name(folder)
    DISKS.add({f"{name} write": disk.write, f"{name} read": disk.read, f"{name} together": disk.together})


def note(file: ScratchFile) -> None:
    """Keeps what a training has seen of its disk, where it has moved enough."""
    write, read = file.rates()
    known = _known(file.folder)
    if known is not None and write and read:
        keep(file.folder, Disk(write, read, known.together))


def _known(folder: str) -> Disk | None:
    """The disk as the table has it; None where a figure is missing, or is one that no disk has."""
    table, name = DISKS.all(), _name(folder)
    write, read, together = (table.get(f"{name} {what}", 0.0) for what in ("write", "read", "together"))
    return Disk(write, read, together) if write > 0 and read > 0 and 0 < together <= 1 else None


def _name(folder: str) -> str:
    """Of the disk; where the folder has been removed meanwhile, whose open file goes on, as it was found before."""
    try:
        device = os.stat(folder).st_dev
    except OSError:
        if folder not in _found:
            raise
        return _found[folder]
    _found[folder] = f"{os.uname().nodename} device {device} {file_system(folder)}"
    return _found[folder]
