"""The processes that were started together, as MPI sees them."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydtconv.support.launcher import launched


class LaunchError(RuntimeError):
    """Processes were started that cannot find each other."""


@dataclass(frozen=True)
class World:
    """The processes that were started together.

    mpi: the module mpi4py.MPI.  Of each rank: its host, the cores that it may run on, the number of its process.
    """

    mpi: Any
    rank: int
    size: int
    hosts: tuple[str, ...]
    cores: tuple[frozenset[int], ...]
    pids: tuple[int, ...]

    @property
    def comm(self) -> Any:
        return self.mpi.COMM_WORLD

    def neighbours(self, rank: int | None = None) -> list[int]:
        """The ranks on the host of a rank, this one by default."""
        host = self.hosts[self.rank if rank is None else rank]
        return [other for other in range(self.size) if self.hosts[other] == host]

    def share_of_cores(self, rank: int | None = None) -> int:
        """How many cores a rank has for itself: each core counts by the number of ranks that may run on it."""
        rank = self.rank if rank is None else rank
        others = self.neighbours(rank)
        share = sum(1 / sum(core in self.cores[other] for other in others) for core in self.cores[rank])
        return max(int(share + 1e-9), 1)


@cache
def world() -> World:
    """Starts MPI, where this is not done yet, and tells who is there.

    Raises LaunchError where mpi4py is missing, and where the launcher started processes that MPI does not know of.
    """
    size, rank = launched()
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise LaunchError(
            f"{size} processes were started together, but MPI cannot be used: {error}. Install it with "
            "pip install 'pydtconv[mpi]', or mpi4py beside the cluster's own MPI"
        ) from error
    comm = MPI.COMM_WORLD
    if size > 1 and comm.size == 1:
        raise LaunchError(
            f"the launcher started {size} processes, of which this is number {rank}, but {library(MPI)} knows of one "
            "only: the launcher belongs to another MPI. Start with the mpiexec of that library"
        )
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    hosts, every, pids = zip(*comm.allgather((socket.gethostname(), frozenset(cores), os.getpid())), strict=True)
    here = World(MPI, comm.rank, comm.size, hosts, every, pids)
    if here.neighbours()[0] == here.rank:
        _unlink_mapped()
    comm.Barrier()
    return here


def _unlink_mapped() -> None:
    """Takes the names of MPICH's shared memory away, which all ranks of this host have mapped by now.

    MPICH does so at its end alone: each job that is killed would leave some MiB of memory behind for good.
    """
    maps = Path("/proc/self/maps")
    for name in set(re.findall(r"/dev/shm/mpich_shm_\w+$", maps.read_text(), re.M) if maps.exists() else ()):
        Path(name).unlink(missing_ok=True)


def library(mpi: Any) -> str:
    """Name and version of the MPI library."""
    text = mpi.Get_library_version().splitlines()[0]
    return " ".join(text.split(",")[0].split()[:4]).replace(" Version:", "")
