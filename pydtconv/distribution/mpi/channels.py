"""The communicators of this process, made once: MPI has some two thousand of them, and a program may set distributions,
or enter their scopes, again and again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property

from pydtconv.distribution.mpi import failure
from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.distribution.mpi.files import Files
from pydtconv.distribution.mpi.hosts import Hosts
from pydtconv.distribution.mpi.launch import World
from pydtconv.distribution.mpi.watch import Watch, stall_timeout


class Channels:
    """What each communicator is for.  One that is made when it is first asked for is asked for by all processes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.departures = failure.install(world)
        self.watch = Watch(world, self.departures)
        #: what processes agree on, and small sums
        self.small = self._new()
        #: gradients, and other sums that go on beside what is computed
        self.large = self._new()
        self.statistics = self._new()
        self.files = Files(world, self.watch, self.small)
        self._parts: dict[tuple[tuple[int, ...], ...], Communicator] = {}

    @cached_property
    def gathered(self) -> Communicator:
        """The second halves of sums in bfloat16."""
        return self._new()

    @cached_property
    def halos(self) -> Communicator:
        return self._new()

    @cached_property
    def hosts(self) -> Hosts:
        """Sums within hosts, and between them."""
        return Hosts(self.world, self.watch)

    def of_parts(self, parts: Sequence[tuple[int, ...]]) -> Communicator:
        """Of the part that has this process, among parts of all ranks; in its order."""
        key = tuple(parts)
        if key not in self._parts:
            number = next(i for i, part in enumerate(key) if self.world.rank in part)
            comm = self.world.comm.Split(number, key[number].index(self.world.rank))
            self._parts[key] = Communicator(comm, self.world.mpi, self.watch)
            comm.Free()
        return self._parts[key]

    def _new(self) -> Communicator:
        return Communicator(self.world.comm, self.world.mpi, self.watch)


def channels(world: World) -> Channels:
    """Those of the processes that were started together, with the time-out that holds now."""
    return _channels(world, stall_timeout())


@cache
def _channels(world: World, timeout: float) -> Channels:
    return Channels(world)
