"""A process that leaves the others says so: they need not wait for it until the time-out.

It leaves where its program ends, in whatever way Python knows of, and where an exception ends fit, evaluate or predict.
A process that waits for one that has left ends them all, and tells why (see watch.py).  A program that has ended waits,
as MPI does, until those of the others have, too.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from pydtconv.distribution.mpi.launch import World

_TEXT = 240
#: seconds between two looks of a process that has nothing else to do
_NAP = 1e-3


class Departures:
    """Notices of all processes to each other."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.comm = world.comm.Dup()
        self._pid = os.getpid()
        #: how often this process has left fit, evaluate or predict by an exception; where all have, they may go on
        self._left = 0
        self._others: dict[int, tuple[int, str]] = {}
        self._ended: dict[int, str] = {}
        #: that of sys.exit in this process, and those that others have told
        self.status = 0
        self.statuses: dict[int, int] = {}
        self._sent: list[Any] = []

    def leave(self, method: str, error: BaseException) -> None:
        """An exception ends fit, evaluate or predict in this process; nothing where it has ended another one inside."""
        if getattr(error, "_told_to_ranks", False):
            return
        error._told_to_ranks = True  # type: ignore[attr-defined]
        self._left += 1
        self._tell(self._left, f"has left {method}: {type(error).__name__}: {error}")

    def end(self, why: str) -> None:
        """This program ends: returns when all have."""
        if os.getpid() != self._pid or self.world.mpi.Is_finalized():
            return
        self._tell(-1 - self.status, f"{why} with status {self.status}" if self.status else why)
        while len(self._ended) < self.world.size - 1:
            self.look()
            time.sleep(_NAP)
        for request, _ in self._sent:
            request.Wait()

    def look(self) -> dict[int, str]:
        """The ranks that have left, from where this process is now, and what they did."""
        status = self.world.mpi.Status()
        while self.comm.Iprobe(self.world.mpi.ANY_SOURCE, 0, status):
            buffer = np.empty(_TEXT, np.uint8)
            self.comm.Recv(buffer, status.source, 0)
            number, _, why = buffer.tobytes().decode(errors="replace").rstrip().partition("\n")
            if int(number) < 0:
                self._ended[status.source] = why
                self.statuses[status.source] = -1 - int(number)
            else:
                self._others[status.source] = (int(number), why)
        left = {rank: why for rank, (count, why) in self._others.items() if count > self._left}
        return self._ended | left

    def _tell(self, number: int, why: str) -> None:
        self._sent = [(request, kept) for request, kept in self._sent if not request.Test()]
        buffer = np.frombuffer(f"{number}\n{why}".encode()[:_TEXT].ljust(_TEXT), np.uint8)
        for rank in range(self.world.size):
            if rank != self.world.rank:
                self._sent.append((self.comm.Isend(buffer, rank), buffer))
