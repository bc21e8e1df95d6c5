"""Files that rank 0 writes for all: the others, before they read one, wait until it is there."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.distribution.mpi.launch import World
from pydtconv.distribution.mpi.watch import Watch


class Files:
    """Notices from rank 0 to each other rank; nobody waits but who reads."""

    def __init__(self, world: World, watch: Watch) -> None:
        self.communicator = Communicator(world.comm, world.mpi, watch)
        self._expected: Counter[bytes] = Counter()
        self._sent: list[Any] = []

    def expect(self, path: Path) -> bool:
        """On another rank than 0: that rank 0 writes the file.  Returns False."""
        self._expected[_key(path)] += 1
        return False

    def announce(self, path: Path) -> None:
        """On rank 0: that it has been written."""
        notice = np.frombuffer(_key(path), np.uint8)
        self._sent = [(request, kept) for request, kept in self._sent if not request.Test()]
        for rank in range(1, self.communicator.size):
            self._sent.append((self.communicator.comm.Isend(notice, rank), notice))

    def wait_for(self, path: Path) -> None:
        """Takes notices until none of this file is missing."""
        while self._expected[_key(path)] > 0:
            notice = np.empty(32, np.uint8)
            self.communicator.wait(self.communicator.comm.Irecv(notice, 0), f"rank 0 to have written {path}")
            self._expected[notice.tobytes()] -= 1


def _key(path: Path) -> bytes:
    return hashlib.sha256(str(path.resolve()).encode()).digest()
