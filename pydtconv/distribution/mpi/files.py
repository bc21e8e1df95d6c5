"""Files that rank 0 writes for all: the others, before they read one, wait until it is there."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.distribution.mpi.launch import World
from pydtconv.distribution.mpi.watch import Watch

#: bytes of what stands for a file
_KEY = 32


class Files:
    """Notices from rank 0 to each other rank; nobody waits but who reads.

    together: operations of all ranks, between two of which they write a file for all.  What rank 0 has written by
    itself before another operation is taken for none of these.
    """

    def __init__(self, world: World, watch: Watch, together: Communicator) -> None:
        self.communicator = Communicator(world.comm, world.mpi, watch)
        self._together = together
        #: of each file, by the operations done when it was written, how many notices are missing
        self._missing: defaultdict[bytes, Counter[int]] = defaultdict(Counter)
        self._sent: list[Any] = []

    def expect(self, path: Path) -> bool:
        """On another rank than 0: that rank 0 writes the file.  Returns False."""
        self._missing[_key(path)][self._together.done] += 1
        return False

    def announce(self, path: Path) -> None:
        """On rank 0: that it has been written."""
        notice = np.frombuffer(_key(path) + self._together.done.to_bytes(8, "little"), np.uint8)
        self._sent = [(request, kept) for request, kept in self._sent if not request.Test()]
        for rank in range(1, self.communicator.size):
            self._sent.append((self.communicator.comm.Isend(notice, rank), notice))

    def wait_for(self, path: Path) -> None:
        """Takes notices until none of this file is missing."""
        missing = self._missing[_key(path)]
        while any(count > 0 for count in missing.values()):
            notice = np.empty(_KEY + 8, np.uint8)
            self.communicator.wait(self.communicator.comm.Irecv(notice, 0), f"rank 0 to have written {path}")
            key, done = notice[:_KEY].tobytes(), int.from_bytes(notice[_KEY:].tobytes(), "little")
            self._missing[key][done] -= 1


def _key(path: Path) -> bytes:
    return hashlib.sha256(str(path.resolve()).encode()).digest()
