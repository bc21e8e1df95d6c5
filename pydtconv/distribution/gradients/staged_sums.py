"""Sums of gradients over the processes of a host, a few at a time, while backward goes on.

Each process copies its gradients into a small piece of shared memory, as soon as backward has them: their place in the
arena is free then.  Copies are collected in buckets.  When all processes have a bucket, each of them adds up a part of
it, in the order of ranks, and applies the sum.  A process begins a bucket when all have read the one whose place it
takes.  It never waits for more than that others come as far in their plans, so that no two can wait for each other.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pydtconv._ext import wire as kernels
from pydtconv.distribution.gradients.shared_memory import shared_rows
from pydtconv.distribution.gradients.shared_memory_all_reduce import Reached
from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.graph.memory.parameter_store import ALIGNMENT
from pydtconv.graph.schedule.steps import STAGED

#: buckets of a process that are in shared memory at a time, and bytes of one
_BUCKETS = 4
_BUCKET = STAGED // _BUCKETS
#: each process's counters: of buckets that it has filled, and of those that it has read; then checks of these
_FILLED, _READ, _CHECKS = 0, 1, 2

#: gets a slice of the flat arrays, and the sum of its gradients
Apply = Callable[[slice, np.ndarray], None]


@dataclass
class _Piece:
    """Neighbours in the flat arrays, of one dtype: words from start to stop, at a byte of the bucket."""

    start: int
    stop: int
    dtype: str
    offset: int


class StagedSums:
    """Buckets that all processes fill in the same order.  itemsize: bytes of a word of the flat arrays.

    Raises NotSharedError, in all processes, where there is no room for them.
    """

    def __init__(self, communicator: Communicator, itemsize: int) -> None:
        self.communicator = communicator
        self.itemsize = itemsize
        memory = shared_rows(communicator, STAGED, "uint8")
        self.rows, self.counters = memory.rows, memory.counters
        self.own = self.rows[communicator.rank]
        self._sums = np.empty(_BUCKET, np.uint8)
        self._number = 1  # of the bucket that is being filled
        self._filled = 0
        self._pieces: list[_Piece] = []
        self._untaken: list[tuple[int, list[_Piece]]] = []
        self._told = ""

    def begin(self, told: str) -> None:
        """Before a step, told in words."""
        self._told = told

    def add(self, part: slice, gradients: np.ndarray | None, dtype: str, apply: Apply) -> None:
        """Adds the gradients of a slice of the flat arrays, 1-D; None for zeros.  Sums may be applied meanwhile."""
        width = np.dtype(dtype).itemsize
        words, start, done = width // self.itemsize, part.start, 0
        while start < part.stop:
            offset = self._place(start, dtype)
            count = min((_BUCKET - offset) // width, (part.stop - start) // words)
            if not count:
                self._publish(apply)
                continue
            own = self._bytes(offset, count * width).view(dtype)
            own[...] = 0 if gradients is None else gradients[done : done + count]
            start, done = start + count * words, done + count
            self._pieces[-1].stop, self._filled = start, offset + count * width

    def finish(self, apply: Apply) -> None:
        """After all gradients of a step: returns when all processes have applied all sums."""
        if self._pieces:
            self._publish(apply)
        self._take(apply, leave=0)
        self._wait(_READ, self._number - 1)

    def _place(self, start: int, dtype: str) -> int:
        """The byte of the bucket for what begins at a word of the flat arrays, which becomes part of the last piece.

        Between variables the flat arrays have gaps, whose sums are zero.
        """
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.dtype == dtype and 0 <= start - last.stop < ALIGNMENT:
            gap = (start - last.stop) * self.itemsize
            if self._filled + gap <= _BUCKET:
                self._bytes(self._filled, gap)[...] = 0
                return self._filled + gap
        line = -(-self._filled // 64) * 64
        self._pieces.append(_Piece(start, start, dtype, line))
        return line

    def _bytes(self, offset: int, nbytes: int) -> np.ndarray:
        first = self._number % _BUCKETS * _BUCKET + offset
        return self.own[first : first + nbytes]

    def _publish(self, apply: Apply) -> None:
        """Ends a bucket, reads the one before it, and begins another."""
        pieces, number = [piece for piece in self._pieces if piece.stop > piece.start], self._number
        check = zlib.crc32(repr(pieces).encode())
        kernels.publish(self.counters, self.communicator.rank, _CHECKS + number % _BUCKETS, check)
        kernels.publish(self.counters, self.communicator.rank, _FILLED, number)
        self._untaken.append((number, pieces))
        self._take(apply, leave=1)
        self._number, self._filled, self._pieces = number + 1, 0, []
        self._wait(_READ, number + 1 - _BUCKETS)

    def _take(self, apply: Apply, leave: int) -> None:
        """Applies this process's part of buckets, but for the last ones, which others may not have filled yet."""
        rank = self.communicator.rank
        while len(self._untaken) > leave:
            number, pieces = self._untaken.pop(0)
            self._wait(_FILLED, number)
            checks = self.counters[:, _CHECKS + number % _BUCKETS]
            if (checks != checks[rank]).any():
                raise RuntimeError(f"{self._told}: expected gradients in one order on all ranks, got several")
            first = number % _BUCKETS * _BUCKET
            for piece in pieces:
                self._apply_part(piece, first + piece.offset, apply)
            kernels.publish(self.counters, rank, _READ, number)

    def _apply_part(self, piece: _Piece, first: int, apply: Apply) -> None:
        width = np.dtype(piece.dtype).itemsize
        words = width // self.itemsize
        count = (piece.stop - piece.start) // words
        each = -(-count // len(self.rows) // ALIGNMENT) * ALIGNMENT
        start = min(self.communicator.rank * each, count)
        size = min(each, count - start)
        if size:
            rows = self.rows[:, first + start * width : first + (start + size) * width].view(piece.dtype)
            total = self._sums[: size * width].view(piece.dtype)
            kernels.sum_rows(rows, total)
            own = piece.start + start * words
            apply(slice(own, own + size * words), total)

    def _wait(self, counter: int, number: int) -> None:
        reached = Reached(self.counters, counter, number)
        if not reached.Test():
            self.communicator.wait(reached, self._told)
