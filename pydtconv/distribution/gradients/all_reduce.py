"""All-reduce backends: how the sum of a slice of the gradients is computed, in which numbers, by which messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pydtconv._ext import wire as kernels
from pydtconv.distribution.mpi.communicator import Communicator, Request


class AllReduce:
    """Starts sums, one after the other in the same order in all processes.

    sends: whether by messages, which must be helped along.
    """

    sends = True

    def begin(self, in_blocks: bool) -> Request | None:
        """Before a step.  in_blocks: whether its sums will be read by `blocks` alone.

        Returns what must be done before gradients are written; None for nothing.
        """
        return None

    def start(self, gradients: np.ndarray, part: slice) -> Request:
        """Starts the sum of a slice of an array, in its dtype.  When it is done, the sum lies there, or in `blocks`."""
        raise NotImplementedError

    def blocks(self, part: slice, dtype: str) -> Iterator[tuple[slice, np.ndarray | None]]:
        """Slices of a slice whose sum is done, each with its sum until the next one; None for that in `gradients`.

        part: counted in numbers of this dtype, as in `start`.
        """
        yield part, None


class MpiAllReduce(AllReduce):
    """Sums in the gradients' own type, by MPI's all-reduce."""

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator

    def start(self, gradients: np.ndarray, part: slice) -> Request:
        return self.communicator.comm.Iallreduce(self.communicator.mpi.IN_PLACE, gradients[part])


class Bfloat16AllReduce(AllReduce):
    """Half of the bytes: gradients travel as bfloat16, their sums are computed in float32.

    Each process receives one chunk of all others, adds, and sends the sum, rounded once more, to all: a reduce-scatter
    and an all-gather.  So all processes hold the same bits.  MPI itself does not add bfloat16.
    """

    def __init__(self, scatter: Communicator, gather: Communicator) -> None:
        self.scatter = scatter
        self.gather = gather
        self._buffers: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._last: _Bfloat16Sum | None = None

    def start(self, gradients: np.ndarray, part: slice) -> Request:
        self._last = _Bfloat16Sum(self, gradients[part], self._last)
        return self._last

    def buffers(self, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays (processes, chunk) for a slice; the same ones each time."""
        key = part.ctypes.data
        chunk = -(-part.size // self.scatter.size)
        if key not in self._buffers or self._buffers[key][0].shape[1] != chunk:
            shape = (self.scatter.size, chunk)
            self._buffers[key] = (np.zeros(shape, np.uint16), np.zeros(shape, np.uint16))
        return self._buffers[key]


class _Bfloat16Sum:
    """One sum under way.  Its second half starts after that of the sum before it, in all processes."""

    def __init__(self, backend: Bfloat16AllReduce, part: np.ndarray, before: _Bfloat16Sum | None) -> None:
        self.backend = backend
        self.part = part
        self.before = before
        self.own, self.parts = backend.buffers(part)
        kernels.to_bfloat16(part, self.own.reshape(-1)[: part.size])
        self._scattering: Any = backend.scatter.comm.Ialltoall(self.own, self.parts)
        self._gathering: Any = None
        self._done = False

    def Test(self) -> bool:
        if self._gathering is None and self._scattering.Test() and self._may_gather():
            chunk = self.own[self.backend.gather.rank]
            kernels.sum_bfloat16(self.parts, chunk)
            self._gathering = self.backend.gather.comm.Iallgather(chunk, self.parts)
        if not self._done and self._gathering is not None and self._gathering.Test():
            kernels.from_bfloat16(self.parts.reshape(-1)[: self.part.size], self.part)
            self._done = True
        return self._done

    def _may_gather(self) -> bool:
        if self.before is not None:
            if self.before._gathering is None:
                self.before.Test()
            if self.before._gathering is None:
                return False
            self.before = None
        return True
