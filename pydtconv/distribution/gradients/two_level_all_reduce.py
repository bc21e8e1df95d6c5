"""Sums of gradients of ranks on several hosts: within a host in memory that its ranks see, between hosts by messages.

On each host one rank, or several of them, a slice each (lanes), add up what the host's ranks have.  Those of a lane on
all hosts then reduce-scatter and all-gather these sums, and the host's ranks read them.  So each host sends and
receives 2 (hosts - 1) / hosts times the gradients, however many ranks it has.  Sums are in the order of a host's ranks,
then in that of hosts: their bits depend neither on lanes nor on buckets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pydtconv._ext import wire as kernels
from pydtconv.distribution.gradients.all_reduce import MpiAllReduce, PieceSum, gathered, pieces_of, span
from pydtconv.distribution.gradients.shared_memory import SharedRows
from pydtconv.distribution.gradients.shared_memory_all_reduce import (
    READ,
    READY,
    SUMMED,
    SharedMemoryAllReduce,
    Stage,
    nothing,
)
from pydtconv.distribution.mpi.communicator import Request
from pydtconv.distribution.mpi.hosts import Hosts
from pydtconv.support.lazy_zeros import forget

#: pieces of one array, one for each host
_Group = list[slice]


class TwoLevelAllReduce(SharedMemoryAllReduce):
    """memory: rows of this host's ranks.  lanes: how many of them talk to other hosts, `hosts.lanes` at most.

    releases: weights that are gathered by way of the rows of gradients take no memory there afterwards.
    narrow: sums of gradients travel between hosts as bfloat16.  told: all of this, for people.
    """

    sends = True

    def __init__(
        self, memory: SharedRows, hosts: Hosts, lanes: int, releases: bool = False, narrow: bool = False
    ) -> None:
        super().__init__(memory, hosts.number)
        self.hosts, self.lanes, self.releases, self.narrow = hosts, lanes, releases, narrow
        self.links = MpiAllReduce(hosts.across, hosts.across)
        self.told = f"on each of {hosts.count} hosts in memory that its ranks see, between hosts as messages"

    def __str__(self) -> str:
        return self.told

    def begin(self, in_blocks: bool) -> Request | None:
        """Weights may still be gathered; that is over when all have read them, before backward."""
        if self.is_idle:
            return super().begin(in_blocks)
        self._in_blocks = in_blocks
        return None

    def rest(self) -> None:
        self.links.rest()

    def start(self, gradients: np.ndarray, part: slice) -> Request:
        rows, number = self._begun(gradients)
        lanes, sent = pieces_of(part, self.lanes), _All()
        groups = [pieces_of(lanes[self.rank], self.hosts.count)] if self.rank < self.lanes else []
        self._publish(READY, number)
        stages: list[Stage] = [
            (self._reached(READY, number), lambda: self._scatter(rows, groups, sent)),
            (sent, lambda: self._gather(rows, groups, sent, self.narrow)),
            (sent, lambda: self._widen(rows, groups, sent, number)),
        ]
        return self._going([*stages, *self._taken(rows, lanes, number)])

    def _sources(self, rows: np.ndarray, part: slice) -> list[tuple[np.ndarray, slice]]:
        return [(rows[i : i + 1], lane) for i, lane in enumerate(pieces_of(part, self.lanes))]

    def reduce_scatter(self, gradients: np.ndarray, pieces: Sequence[slice]) -> Request:
        rows, number = self._begun(gradients)
        groups, sent = self._groups(pieces), _All()

        def take() -> None:
            own, lane = pieces[self.hosts.rank], self.rank % self.lanes
            if lane != self.rank:
                kernels.sum_rows(rows[lane : lane + 1, own], rows[self.rank, own])
            self.note_read(number)

        self._publish(READY, number)
        return self._going(
            [
                (self._reached(READY, number), lambda: self._scatter(rows, groups, sent)),
                (sent, lambda: self._publish(SUMMED, number)),
                (self._reached(SUMMED, number), take),
                (self._reached(READ, number), nothing),
            ]
        )

    def all_gather(self, numbers: np.ndarray, pieces: Sequence[slice], number: int = 0) -> Request:
        rows, number = self._begun(numbers)
        groups, sent, mine = self._groups(pieces), _All(), pieces[self.hosts.rank]

        def collect() -> None:
            for i, group in enumerate(groups):
                owner, piece = self.rank + i * self.lanes, group[self.hosts.host]
                if self.rank < owner < len(rows):
                    kernels.sum_rows(rows[owner : owner + 1, piece], rows[self.rank, piece])
            self._gather(rows, groups, sent, narrow=False)

        def copy() -> None:
            for (_, owner), piece in zip(self.hosts.places, pieces, strict=True):
                lane = owner % self.lanes
                kernels.sum_rows(rows[lane : lane + 1, piece], numbers[piece])
            self.note_read(number)

        def leave() -> None:
            for piece in pieces if self.releases else ():
                forget(rows[self.rank], piece, shared=True)

        rows[self.rank, mine] = numbers[mine]
        self._publish(READY, number)
        stages: list[Stage] = [
            (self._reached(READY, number), collect),
            (sent, lambda: self._publish(SUMMED, number)),
            (self._reached(SUMMED, number), copy),
            (self._reached(READ, number), leave),
        ]
        return self._going(stages)

    def _groups(self, pieces: Sequence[slice]) -> list[_Group]:
        """The pieces that this process sends and receives for its host: of each lane's ranks those of one number."""
        if self.rank >= self.lanes:
            return []
        of = dict(zip(self.hosts.places, pieces, strict=True))
        most = max(number for _, number in of)
        found = []
        for number in range(self.rank, most + 1, self.lanes):
            group = [of.get((host, number)) for host in range(self.hosts.count)]
            start = next(piece.start for piece in group if piece is not None)
            found.append([slice(start, start) if piece is None else piece for piece in group])
        return found

    def _scatter(self, rows: np.ndarray, groups: Sequence[_Group], sent: _All) -> None:
        """Adds up what the host's ranks have, and starts the sums over hosts, of which each gets its piece."""
        own = rows[self.rank]
        for piece in (piece for group in groups for piece in group):
            kernels.sum_rows(rows[:, piece], own[piece])
        sent.requests = []
        for group in groups:
            part = own[span(group)]
            sent.requests.append(PieceSum(self.links, own, group, _narrow(part) if self.narrow else part))

    def _gather(self, rows: np.ndarray, groups: Sequence[_Group], sent: _All, narrow: bool) -> None:
        """Starts to give all hosts what each has of its pieces.  narrow: which are bfloat16 by now."""
        own, across = rows[self.rank], self.hosts.across
        if not narrow:
            sent.requests = [gathered(across, own, group) for group in groups]
            return
        sent.narrow = [_narrow(own[span(group)]) for group in groups]
        sent.requests = []
        for group, array in zip(groups, sent.narrow, strict=True):
            first = span(group).start
            sent.requests.append(gathered(across, array, [slice(p.start - first, p.stop - first) for p in group]))

    def _widen(self, rows: np.ndarray, groups: Sequence[_Group], sent: _All, number: int) -> None:
        """After `_gather`: sums of all hosts are there."""
        for group, array in zip(groups, sent.narrow, strict=self.narrow):
            kernels.from_bfloat16(array, rows[self.rank, span(group)])
        sent.narrow = []
        self._publish(SUMMED, number)


def _narrow(numbers: np.ndarray) -> np.ndarray:
    """As bfloat16."""
    array = np.empty(numbers.size, np.uint16)
    kernels.to_bfloat16(numbers, array)
    return array


class _All:
    """Done when all of its requests are.  narrow: what they receive where that is bfloat16."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.narrow: list[np.ndarray] = []

    def Test(self) -> bool:
        self.requests = [request for request in self.requests if not request.Test()]
        return not self.requests
