"""Sums of gradients in memory that all processes see: no messages, but counters of what is ready."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from pydtconv._ext import wire as kernels
from pydtconv.distribution.gradients.all_reduce import AllReduce
from pydtconv.distribution.gradients.shared_memory import SharedRows
from pydtconv.distribution.mpi.communicator import Request

#: each process's counters, of slices: whose gradients are there, of which its piece is summed, whose sum it has read
_READY, _SUMMED, _READ = range(3)
#: up to so many processes, each adds up all gradients for itself; more add a piece each
_FEW = 3
#: elements that are summed at a time, so that the optimizer finds them in the cache
_BLOCK = 1 << 17
#: elements; pieces are multiples of this, so that no two have a cache line in common
_LINE = 16


class SharedMemoryAllReduce(AllReduce):
    """Each process's gradients are a row of shared memory.

    Where sums are read in blocks, few processes read all rows and add.  More of them first add a piece of every slice
    each, over their own gradients, and then read the others' pieces.  Where the sum has to lie in the gradients, the
    pieces are copied there.  Sums are in the order of ranks, and so the same in all processes.
    """

    sends = False

    def __init__(self, memory: SharedRows, rank: int) -> None:
        self.rows, self.counters = memory.rows, memory.counters
        self.rank = rank
        # where another backend on the same rows has left off, when a model is trained again after another one
        self.started = self.read = int(memory.counters[rank, _READY])
        self._in_blocks = False
        self._last: _SharedSum | None = None
        self._blocks: dict[str, np.ndarray] = {}

    def begin(self, in_blocks: bool) -> Request:
        self._in_blocks = in_blocks
        self.note_read(self.started)
        return Reached(self.counters, _READ, self.started)

    def start(self, gradients: np.ndarray, part: slice) -> Request:
        self.started += 1
        self._publish(_READY, self.started)
        if self._in_blocks and len(self.rows) <= _FEW:
            return Reached(self.counters, _READY, self.started)
        rows = self._rows_of(gradients.dtype.name)
        self._last = _SharedSum(self, rows, part, self.started, not self._in_blocks, self._last)
        return self._last

    def _rows_of(self, dtype: str) -> np.ndarray:
        """The rows as numbers of the dtype."""
        return self.rows if self.rows.dtype == dtype else self.rows.view(dtype)

    def blocks(self, part: slice, dtype: str) -> Iterator[tuple[slice, np.ndarray | None]]:
        if not self._in_blocks:
            yield part, None
            return
        few, numbers = len(self.rows) <= _FEW, self._rows_of(dtype)
        sums = self._blocks.setdefault(dtype, np.empty(min(_BLOCK, numbers.shape[1]), dtype))
        for rank, piece in enumerate([part] if few else self.pieces(part)):
            rows = numbers if few else numbers[rank : rank + 1]
            for start in range(piece.start, piece.stop, _BLOCK):
                block = slice(start, min(start + _BLOCK, piece.stop))
                total = sums[: block.stop - block.start]
                kernels.sum_rows(rows[:, block], total)
                yield block, total
        self.note_read(self.read + 1)

    def pieces(self, part: slice) -> list[slice]:
        """Of a slice, one for each process; some may be empty."""
        count = len(self.rows)
        each = -(-(part.stop - part.start) // count // _LINE) * _LINE
        starts = [min(part.start + i * each, part.stop) for i in range(count + 1)]
        return [slice(a, b) for a, b in itertools.pairwise(starts)]

    def add_piece(self, rows: np.ndarray, pieces: list[slice], number: int) -> None:
        """Sums this process's piece of the number-th slice."""
        own = pieces[self.rank]
        kernels.sum_rows(rows[:, own], rows[self.rank, own])
        self._publish(_SUMMED, number)

    def copy_pieces(self, rows: np.ndarray, pieces: list[slice], number: int) -> None:
        """Copies the other processes' pieces."""
        for rank, piece in enumerate(pieces):
            if rank != self.rank:
                kernels.sum_rows(rows[rank : rank + 1, piece], rows[self.rank, piece])
        self.note_read(number)

    def note_read(self, number: int) -> None:
        self.read = number
        self._publish(_READ, number)

    def _publish(self, counter: int, number: int) -> None:
        kernels.publish(self.counters, self.rank, counter, number)


class Reached:
    """Done when a counter of all processes has come so far."""

    def __init__(self, counters: np.ndarray, column: int, number: int) -> None:
        self.counters, self.column, self.number = counters, column, number

    def Test(self) -> bool:
        return bool(kernels.least(self.counters, self.column) >= self.number)


class _SharedSum:
    """The number-th sum, under way: stages, each of which begins when all processes have come so far.

    And when the sum before it has passed that stage: counters tell of all sums up to a number.
    """

    def __init__(
        self,
        backend: SharedMemoryAllReduce,
        rows: np.ndarray,
        part: slice,
        number: int,
        copied: bool,
        before: _SharedSum | None,
    ) -> None:
        self._before = before
        pieces = backend.pieces(part)
        self._stages: list[tuple[int, Callable[[], None]]] = [
            (_READY, lambda: backend.add_piece(rows, pieces, number)),
            (_SUMMED, lambda: backend.copy_pieces(rows, pieces, number) if copied else None),
        ]
        if copied:  # whose gradients an optimizer may change
            self._stages.append((_READ, lambda: None))
        self._reached = {counter: Reached(backend.counters, counter, number) for counter, _ in self._stages}

    def Test(self) -> bool:
        while self._stages and self._may_go_on() and self._reached[self._stages[0][0]].Test():
            self._stages.pop(0)[1]()
        return not self._stages

    def _may_go_on(self) -> bool:
        if self._before is not None and not self._before._stages:
            self._before = None
        return self._before is None or len(self._before._stages) < len(self._stages)
