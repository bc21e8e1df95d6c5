"""All-reduce backends: how the sum of a slice of the gradients is computed, in which numbers, by which messages.

An all-reduce is a reduce-scatter, after which each process has the sum of its piece of the slice, and an all-gather of
the pieces.  Where state is sharded these are two operations, the second of weights.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pydtconv._ext import wire as kernels
from pydtconv.distribution.mpi.communicator import Communicator, Request

#: elements; pieces are multiples of this, so that no two have a cache line in common
_LINE = 16


def pieces_of(part: slice, count: int) -> list[slice]:
    """Pieces of a slice, one for each of so many processes; some may be empty."""
    each = -(-(part.stop - part.start) // count // _LINE) * _LINE
    starts = [min(part.start + i * each, part.stop) for i in range(count + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(starts)]


class AllReduce:
    """Starts sums, one after the other in the same order in all processes.

    sends: whether by messages, which must be helped along.  shares: whether gradients lie in memory of several
    processes.  in_any_order: whether processes may start their gathers in different orders.
    """

    sends, shares, in_any_order = True, False, False

    def __str__(self) -> str:
        """How gradients come together, for people."""
        return "sent as messages"

    def begin(self, in_blocks: bool) -> Request | None:
        """Before a step.  in_blocks: whether its sums will be read by `blocks` alone.

        Returns what must be done before gradients are written; None for nothing.
        """
        return None

    def start(self, gradients: np.ndarray, part: slice) -> Request:
        """Starts the sum of a slice of an array, in its dtype.  When it is done, the sum lies there, or in `blocks`."""
        raise NotImplementedError

    def reduce_scatter(self, gradients: np.ndarray, pieces: Sequence[slice]) -> Request:
        """Starts the sum of pieces, one for each process: when it is done, that of its own alone lies in `gradients`.

        Sums are in the order of ranks.
        """
        raise NotImplementedError

    def all_gather(self, numbers: np.ndarray, pieces: Sequence[slice], number: int = 0) -> Request:
        """Starts to give each process all pieces, of which each has its own.  number: of these pieces among others."""
        raise NotImplementedError

    def rest(self) -> None:
        """After the sums of a step: gives memory back that they alone need."""

    def blocks(self, part: slice, dtype: str) -> Iterator[tuple[slice, np.ndarray | None]]:
        """Slices of a slice whose sum is done, each with its sum until the next one; None for that in `gradients`.

        part: counted in numbers of this dtype, as in `start`.
        """
        yield part, None


class MpiAllReduce(AllReduce):
    """Sums in the gradients' own type, by MPI's all-reduce.

    gather: what pieces are gathered by, beside sums.
    """

    in_any_order = True

    def __init__(self, communicator: Communicator, gather: Communicator) -> None:
        self.communicator = communicator
        self.gather = gather
        #: arrays that sums which are over have received into
        self.free: list[np.ndarray] = []

    def start(self, gradients: np.ndarray, part: slice) -> Request:
        return self.communicator.comm.Iallreduce(self.communicator.mpi.IN_PLACE, gradients[part])

    def reduce_scatter(self, gradients: np.ndarray, pieces: Sequence[slice]) -> Request:
        return PieceSum(self, gradients, pieces, gradients[span(pieces)])

    def rest(self) -> None:
        self.free.clear()

    def all_gather(self, numbers: np.ndarray, pieces: Sequence[slice], number: int = 0) -> Request:
        return PieceGather(self.gather, numbers, pieces, number)


def gathered(communicator: Communicator, numbers: np.ndarray, pieces: Sequence[slice]) -> Request:
    """Starts to fill pieces of an array, of which each process has its own."""
    kind, whole = communicator.mpi._typedict[numbers.dtype.char], span(pieces)
    counts = [piece.stop - piece.start for piece in pieces]
    starts = [piece.start - whole.start for piece in pieces]
    return communicator.comm.Iallgatherv(communicator.mpi.IN_PLACE, [numbers[whole], counts, starts, kind])


def span(pieces: Sequence[slice]) -> slice:
    """From the first piece to the last one."""
    return slice(min(piece.start for piece in pieces), max(piece.stop for piece in pieces))


class PieceSum:
    """The sum of this process's piece of a slice, under way: each process sends the others their pieces, and adds.

    Messages between pairs: MPI's all-to-all sends to one after the other, and leaves links idle.
    sent: what the pieces span as it is sent, in the gradients' numbers or as bfloat16; then the sum is rounded to that,
    too.
    """

    def __init__(self, backend: MpiAllReduce, gradients: np.ndarray, pieces: Sequence[slice], sent: np.ndarray) -> None:
        rank, size, comm = backend.communicator.rank, backend.communicator.size, backend.communicator.comm
        own, first = pieces[rank], span(pieces).start
        self.backend, self.target, self._sent = backend, gradients[own], sent
        self._rows = self._array((size, own.stop - own.start), sent.dtype)
        others = [(rank + distance) % size for distance in range(1, size)]
        self._requests = [comm.Irecv(self._rows[other], other) for other in reversed(others) if own.stop > own.start]
        for other in (rank, *others):
            piece = sent[pieces[other].start - first : pieces[other].stop - first]
            if other == rank:
                self._rows[rank] = piece
            elif piece.size:
                self._requests.append(comm.Isend(piece, other))
        self._done = False

    def _array(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> np.ndarray:
        """The smallest one that is free and has room, or a new one."""
        size, free = shape[0] * shape[1], self.backend.free
        fitting = [array for array in free if array.dtype == dtype and array.size >= size]
        self._memory = min(fitting, key=np.size) if fitting else np.empty(size, dtype)
        free[:] = [array for array in free if array is not self._memory]
        return self._memory[:size].reshape(shape)

    def Test(self) -> bool:
        if not self._done and self.backend.communicator.mpi.Request.Testall(self._requests):
            if self._rows.dtype == self.target.dtype:
                kernels.sum_rows(self._rows, self.target)
            else:
                kernels.sum_bfloat16(self._rows, self._rows[0])
                kernels.from_bfloat16(self._rows[0], self.target)
            self.backend.free.append(self._memory)
            self._done = True
        return self._done


class PieceGather:
    """Each process's piece on its way to all others, by messages between pairs.

    number: by which messages find each other, in whatever order processes start.
    """

    def __init__(self, communicator: Communicator, numbers: np.ndarray, pieces: Sequence[slice], number: int) -> None:
        rank, size, comm = communicator.rank, communicator.size, communicator.comm
        self._all = communicator.mpi.Request.Testall
        others = [(rank + distance) % size for distance in range(1, size)]
        here = [other for other in reversed(others) if pieces[other].stop > pieces[other].start]
        self._requests = [comm.Irecv(numbers[pieces[other]], other, number) for other in here]
        if pieces[rank].stop > pieces[rank].start:
            self._requests += [comm.Isend(numbers[pieces[rank]], other, number) for other in others]

    def Test(self) -> bool:
        return bool(self._all(self._requests))


class Bfloat16AllReduce(MpiAllReduce):
    """Half of the bytes: gradients travel as bfloat16, their sums are computed in float32.

    Each process receives one chunk of all others, adds, and sends the sum, rounded once more, to all: a reduce-scatter
    and an all-gather.  So all processes hold the same bits.  MPI itself does not add bfloat16.
    """

    def __str__(self) -> str:
        return "sent as messages, in bfloat16"

    def __init__(self, scatter: Communicator, gather: Communicator) -> None:
        super().__init__(scatter, gather)
        self.scatter = scatter
        self._buffers: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._last: _Bfloat16Sum | None = None

    def start(self, gradients: np.ndarray, part: slice) -> Request:
        self._last = _Bfloat16Sum(self, gradients[part], self._last)
        return self._last

    def reduce_scatter(self, gradients: np.ndarray, pieces: Sequence[slice]) -> Request:
        part = gradients[span(pieces)]
        sent = np.empty(part.size, np.uint16)
        kernels.to_bfloat16(part, sent)
        return PieceSum(self, gradients, pieces, sent)

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
