"""Sums of gradients in memory that all processes see: no messages, but counters of what is ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from pydtconv._ext import wire as kernels
from pydtconv.distribution.gradients.all_reduce import AllReduce, pieces_of
from pydtconv.distribution.gradients.shared_memory import SharedRows
from pydtconv.distribution.mpi.communicator import Request

#: each process's counters, of slices: whose gradients are there, of which its piece is summed, whose sum it has read
READY, SUMMED, READ = range(3)
#: up to so many processes, each adds up all gradients for itself; more add a piece each
_FEW = 3
#: what is waited for, and what is done then
Stage = tuple[Request, Callable[[], None]]
#: elements that are summed at a time, so that the optimizer finds them in the cache
_BLOCK = 1 << 17


class SharedMemoryAllReduce(AllReduce):
    """Each process's gradients are a row of shared memory.

    Where sums are read in blocks, few processes read all rows and add.  More of them first add a piece of every slice
    each, over their own gradients, and then read the others' pieces.  Where the sum has to lie in the gradients, the
    pieces are copied there.  Sums are in the order of ranks, and so the same in all processes.
    """

    sends, shares = False, True

    def __str__(self) -> str:
        return "in memory that all ranks see"

    def __init__(self, memory: SharedRows, rank: int) -> None:
        self.rows, self.counters = memory.rows, memory.counters
        self.rank = rank
        # where another backend on the same rows has left off, when a model is trained again after another one
        self.started = self.read = int(memory.counters[rank, READY])
        self._in_blocks = False
        self._last: Stages | None = None
        self._blocks: dict[str, np.ndarray] = {}

    @property
    def is_idle(self) -> bool:
        """Whether this process has come to the end of all operations."""
        return self._last is None or self._last.is_over

    def begin(self, in_blocks: bool) -> Request | None:
        self._in_blocks = in_blocks
        self.note_read(self.started)
        return Reached(self.counters, READ, self.started)

    def start(self, gradients: np.ndarray, part: slice) -> Request:
        rows, number = self._begun(gradients)
        pieces = pieces_of(part, len(rows))
        self._publish(READY, number)
        if self._in_blocks and len(self.rows) <= _FEW:
            return self._reached(READY, number)
        ready = self._reached(READY, number)
        return self._going([(ready, lambda: self.add_piece(rows, pieces, number)), *self._taken(rows, pieces, number)])

    def _taken(self, rows: np.ndarray, pieces: Sequence[slice], number: int) -> list[Stage]:
        """The end of a sum of pieces, each of which lies in another row."""
        summed = self._reached(SUMMED, number)
        if self._in_blocks:
            return [(summed, nothing)]
        own = rows[self.rank]  # gradients, which an optimizer may change
        return [
            (summed, lambda: self.copy_pieces(rows, pieces, number, own)),
            (self._reached(READ, number), nothing),
        ]

    def _reached(self, counter: int, number: int) -> Request:
        return Reached(self.counters, counter, number)

    def _going(self, stages: Sequence[Stage]) -> Request:
        """An operation of these stages."""
        self._last = Stages(stages, self._last)
        return self._last

    def _rows_of(self, dtype: str) -> np.ndarray:
        """The rows as numbers of the dtype."""
        return self.rows if self.rows.dtype == dtype else self.rows.view(dtype)

    def blocks(self, part: slice, dtype: str) -> Iterator[tuple[slice, np.ndarray | None]]:
        if not self._in_blocks:
            yield part, None
            return
        numbers = self._rows_of(dtype)
        sums = self._blocks.setdefault(dtype, np.empty(min(_BLOCK, numbers.shape[1]), dtype))
        for rows, piece in self._sources(numbers, part):
            for start in range(piece.start, piece.stop, _BLOCK):
                block = slice(start, min(start + _BLOCK, piece.stop))
                total = sums[: block.stop - block.start]
                kernels.sum_rows(rows[:, block], total)
                yield block, total
        self.note_read(self.read + 1)

    def _sources(self, rows: np.ndarray, part: slice) -> list[tuple[np.ndarray, slice]]:
        """The rows that are added up for each piece of a slice."""
        if len(rows) <= _FEW:
            return [(rows, part)]
        return [(rows[i : i + 1], piece) for i, piece in enumerate(pieces_of(part, len(rows)))]

    def reduce_scatter(self, gradients: np.ndarray, pieces: Sequence[slice]) -> Request:
        rows, number = self._begun(gradients)
        self._publish(READY, number)

        def add() -> None:
            self.add_piece(rows, pieces, number)
            self.note_read(number)

        return self._going([(self._reached(READY, number), add), (self._reached(READ, number), nothing)])

    def all_gather(self, numbers: np.ndarray, pieces: Sequence[slice], number: int = 0) -> Request:
        """By the rows of gradients, which nobody reads any more."""
        rows, number = self._begun(numbers)
        rows[self.rank, pieces[self.rank]] = numbers[pieces[self.rank]]
        self._publish(READY, number)
        ready = self._reached(READY, number)
        return self._going([(ready, lambda: self.copy_pieces(rows, pieces, number, numbers))])

    def _begun(self, numbers: np.ndarray) -> tuple[np.ndarray, int]:
        """Counts an operation; the rows as such numbers, and its number."""
        self.started += 1
        return self._rows_of(numbers.dtype.name), self.started

    def add_piece(self, rows: np.ndarray, pieces: Sequence[slice], number: int) -> None:
        """Sums this process's piece of the number-th slice."""
        own = pieces[self.rank]
        kernels.sum_rows(rows[:, own], rows[self.rank, own])
        self._publish(SUMMED, number)

    def copy_pieces(self, rows: np.ndarray, pieces: Sequence[slice], number: int, into: np.ndarray) -> None:
        """Copies the other processes' pieces."""
        for rank, piece in enumerate(pieces):
            if rank != self.rank:
                kernels.sum_rows(rows[rank : rank + 1, piece], into[piece])
        self.note_read(number)

    def note_read(self, number: int) -> None:
        self.read = number
        self._publish(READ, number)

    def _publish(self, counter: int, number: int) -> None:
        kernels.publish(self.counters, self.rank, counter, number)


class Reached:
    """Done when a counter of all processes has come so far."""

    def __init__(self, counters: np.ndarray, column: int, number: int) -> None:
        self.counters, self.column, self.number = counters, column, number

    def Test(self) -> bool:
        return bool(kernels.least(self.counters, self.column) >= self.number)


def nothing() -> None:
    pass


class Stages:
    """An operation under way: stages, each of which begins when what it waits for is done.

    And when the operation before it has passed that stage: counters tell of all operations up to a number.
    """

    def __init__(self, stages: Sequence[Stage], before: Stages | None) -> None:
        self._before = before
        self._stages = list(stages)

    @property
    def is_over(self) -> bool:
        return not self._stages

    def Test(self) -> bool:
        while self._stages and self._may_go_on():
            condition, act = self._stages[0]
            if not condition.Test():
                break
            self._stages.pop(0)
            act()
        return not self._stages

    def _may_go_on(self) -> bool:
        if self._before is not None and not self._before._stages:
            self._before = None
        return self._before is None or len(self._before._stages) < len(self._stages)
