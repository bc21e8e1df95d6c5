"""The ranks by hosts, as MPI tells, and communicators within a host and between hosts."""

from __future__ import annotations

from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.distribution.mpi.launch import World
from pydtconv.distribution.mpi.watch import Watch


class Hosts:
    """places: of each rank (host, number there), counted from 0 in the order of ranks; host, number: of this one.

    local: of the ranks of this host.  across: of those that have this one's number on their hosts.
    lanes: how many numbers there are on every host.
    """

    def __init__(self, world: World, watch: Watch) -> None:
        here = world.comm.Split_type(world.mpi.COMM_TYPE_SHARED, key=world.rank)
        first = world.comm.allgather(here.bcast(world.rank))
        hosts = sorted(set(first))
        self.places = [(hosts.index(first[rank]), first[:rank].count(first[rank])) for rank in range(world.size)]
        self.rank = world.rank
        self.host, self.number = self.places[world.rank]
        self.count = len(hosts)
        self.lanes = min(first.count(host) for host in hosts)
        across = world.comm.Split(self.number, self.host)
        self.local = Communicator(here, world.mpi, watch)
        self.across = Communicator(across, world.mpi, watch)
        here.Free()
        across.Free()

    @property
    def several(self) -> bool:
        """Whether there are several hosts, and one of them has several ranks."""
        return 1 < self.count < len(self.places)
