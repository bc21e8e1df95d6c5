"""How ranks of several hosts sum gradients: of how many ranks of each host messages are the fastest, by measurement."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from pydtconv.distribution.gradients.shared_memory import SharedRows, rows_of_hosts
from pydtconv.distribution.gradients.two_level_all_reduce import TwoLevelAllReduce
from pydtconv.distribution.mpi.channels import Channels
from pydtconv.distribution.mpi.communicator import Request

#: bytes that are summed, and how often: the fastest counts
_NBYTES, _TIMES = 1 << 20, 3
_WHAT = "the measurement of the links between hosts"


@dataclass(frozen=True)
class TwoLevels:
    """seconds: of a sum of 1 MiB, for each number of ranks of a host that talk to other hosts (lanes); link: those that
    the links alone take for it.
    """

    hosts: int
    seconds: dict[int, float]
    link: float

    @property
    def lanes(self) -> int:
        """The fastest number."""
        return min(self.seconds, key=lambda lanes: self.seconds[lanes])

    def __str__(self) -> str:
        others = [f" (by {n}: {1e3 * s:.2f} ms)" for n, s in self.seconds.items() if n != self.lanes]
        return (
            f"on each of {self.hosts} hosts in memory that its ranks see, between hosts sent by {self.lanes} of each: "
            f"1 MiB takes {1e3 * self.seconds[self.lanes]:.2f} ms{''.join(others)}, the links alone "
            f"{1e3 * self.link:.2f} ms"
        )


@cache
def two_levels(channels: Channels) -> TwoLevels:
    """What all ranks, which all call this, measure together once.  Raises NotSharedError."""
    hosts = channels.hosts
    memory = rows_of_hosts(hosts, channels.small, _NBYTES // 4, "float32")
    found = {}
    for lanes in sorted({1, hosts.lanes}):
        backend = TwoLevelAllReduce(memory, hosts, lanes)
        found[lanes] = _fastest(channels, partial(_sum, channels, backend, memory))
    ring = _fastest(channels, lambda: channels.small.wait(_Ring(channels), _WHAT))
    return TwoLevels(hosts.count, found, ring * 2 * (hosts.count - 1) / hosts.count)


def _fastest(channels: Channels, run: Callable[[], None]) -> float:
    """Seconds of the slowest rank in the fastest of some runs, the same in all ranks."""
    times = []
    for _ in range(1 + _TIMES):
        channels.small.allreduce(np.zeros(1), _WHAT)
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return float(channels.small.allgather(times, _WHAT).max(0)[1:].min())


def _sum(channels: Channels, backend: TwoLevelAllReduce, memory: SharedRows) -> None:
    backend.begin(in_blocks=False)
    row = memory.rows[channels.hosts.number]
    channels.small.wait(backend.start(row, slice(0, row.size)), _WHAT)


class _Ring:
    """One rank of each host sends as many bytes to the next host, and receives as many; all hosts at the same time."""

    def __init__(self, channels: Channels) -> None:
        across = channels.hosts.across
        self._mpi = across.mpi
        self._sent, self._received = np.zeros((2, _NBYTES), np.uint8)
        others = ((across.rank - 1) % across.size, (across.rank + 1) % across.size)
        self._requests: list[Request] = []
        if channels.hosts.number == 0:
            self._requests = [across.comm.Irecv(self._received, others[0]), across.comm.Isend(self._sent, others[1])]

    def Test(self) -> bool:
        return bool(self._mpi.Request.Testall(self._requests))
