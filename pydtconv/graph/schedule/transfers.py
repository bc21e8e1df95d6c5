"""Transfers between the arena and a scratch file: the steps that begin them, and a model of the disk that does them.

Two queues serve transfers in the order in which they began: one writes, the other reads.  Where both have work they
share the disk.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pydtconv.graph.memory.storage import Storage, View
from pydtconv.graph.schedule.asynchronous import StartStep
from pydtconv.graph.schedule.steps import Binder
from pydtconv.kernels.base import Call
from pydtconv.ops.base import Spec

#: bytes that transfers begin at and are multiples of, in memory and in the file: direct I/O wants that
PAGE = 4096


class TransfersData(Protocol):
    """What runs transfers: a scratch file."""

    def bind(self, array: np.ndarray, place: int, writes: bool, name: str) -> tuple[Call, Call]:
        """What begins a transfer of the array and returns at once, and what waits for it and raises its error."""


@dataclass(eq=False)
class TransferStep(StartStep):
    """Begins to write a storage to the scratch file, or to read it back.  place: bytes from the start of the file."""

    storage: Storage
    place: int

    @property
    def view(self) -> View:
        """The whole storage, as bytes."""
        return View(self.storage, Spec((self.storage.nbytes,), "uint8"))


@dataclass(eq=False)
class WriteStep(TransferStep):
    """Begins to write a storage to the file."""

    kind = "write"

    def reads(self) -> list[View]:
        return [self.view]

    def writes(self) -> list[View]:
        return []

    def bind_both(self, binder: Binder) -> tuple[Call, Call]:
        return binder.transfers().bind(binder.array(self.view), self.place, True, f"write {self.storage.name}")


@dataclass(eq=False)
class ReadStep(TransferStep):
    """Begins to read a storage back from the file."""

    kind = "read"

    def reads(self) -> list[View]:
        return []

    def writes(self) -> list[View]:
        return [self.view]

    def bind_both(self, binder: Binder) -> tuple[Call, Call]:
        return binder.transfers().bind(binder.array(self.view), self.place, False, f"read {self.storage.name}")


@dataclass(frozen=True)
class Disk:
    """Bytes per second of a disk when it only writes or only reads.

    together: the share of both rates that is left while it does both.  latency: seconds that each transfer takes
    besides.
    """

    write: float = 2.0e9
    read: float = 2.0e9
    together: float = 0.5
    latency: float = 1e-4


class Queues:
    """The two queues of a disk as time goes on; transfers are numbers.  spans: begin and end of each, in seconds."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.now = 0.0
        self.spans: dict[tuple[str, int], tuple[float, float]] = {}
        self._waiting: dict[str, deque[list[float]]] = {"write": deque(), "read": deque()}  # number, seconds left
        self._began: dict[str, float] = {}

    def add(self, kind: str, number: int, nbytes: int) -> None:
        """A transfer that begins now, when those before it are done."""
        rate = self.disk.write if kind == "write" else self.disk.read
        self._waiting[kind].append([number, nbytes / rate + self.disk.latency])
        if len(self._waiting[kind]) == 1:
            self._began[kind] = self.now

    def advance(self, time: float) -> None:
        """Lets time go on until `time`."""
        while self.now < time and self._go_on(time - self.now):
            pass
        self.now = max(self.now, time)

    def finish(self, kind: str, number: int) -> float:
        """The time at which a transfer is done; it goes on until then."""
        while (kind, number) not in self.spans:
            self._go_on(float("inf"))
        return self.spans[kind, number][1]

    def _go_on(self, most: float) -> bool:
        """Until the next transfer is done, or for `most` seconds; returns whether anything was under way."""
        busy = [kind for kind, waiting in self._waiting.items() if waiting]
        if not busy:
            return False
        share = self.disk.together if len(busy) == 2 else 1.0
        step = min(most, *(self._waiting[kind][0][1] / share for kind in busy))
        self.now += step
        for kind in busy:
            first = self._waiting[kind][0]
            first[1] -= step * share
            if first[1] <= 1e-12:
                self._waiting[kind].popleft()
                self.spans[kind, int(first[0])] = (self._began[kind], self.now)
                self._began[kind] = self.now
        return True
