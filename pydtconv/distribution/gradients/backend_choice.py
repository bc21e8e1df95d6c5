"""Which all-reduce backend sums the gradients of a model."""

from __future__ import annotations

import warnings
from typing import Any
from weakref import WeakKeyDictionary

from pydtconv.distribution.gradients.all_reduce import AllReduce, Bfloat16AllReduce, MpiAllReduce
from pydtconv.distribution.gradients.shared_memory import (
    NotSharedError,
    SeveralHostsError,
    SharedRows,
    rows_of_hosts,
    shared_rows,
)
from pydtconv.distribution.gradients.shared_memory_all_reduce import SharedMemoryAllReduce
from pydtconv.distribution.gradients.two_level_all_reduce import TwoLevelAllReduce
from pydtconv.distribution.gradients.two_levels import TwoLevels, two_levels
from pydtconv.distribution.mpi.channels import Channels
from pydtconv.distribution.options import Options


class BackendChoice:
    """Memory that all processes of a host see where it can be had and the options allow it, otherwise messages.

    levels: how hosts with several processes each talk to each other; None where they do not, or no sum has begun.
    """

    def __init__(self, channels: Channels, options: Options) -> None:
        self.channels = channels
        self.world = channels.world
        self.options = options
        self._shared: WeakKeyDictionary[Any, SharedRows | None] = WeakKeyDictionary()
        self._told = False
        self.levels: TwoLevels | None = None

    def of(self, memory: Any) -> AllReduce:
        """For the gradients of a plan's memory; where they are shared they lie there from now on.

        Warns once, on rank 0, where processes of a host cannot share them.
        """
        store = memory.store
        if self.options.shared_memory and store not in self._shared:
            self._shared[store] = self._rows(store)
        shared, narrow = self._shared.get(store), self.options.wire == "bfloat16"
        if shared is None:
            kind = Bfloat16AllReduce if narrow else MpiAllReduce
            return kind(self.channels.large, self.channels.gathered)
        hosts = self.channels.hosts if self.levels else None
        store.gradients = shared.rows[self.world.rank if hosts is None else hosts.number]
        memory.generation += 1
        if hosts is None or self.levels is None:
            return SharedMemoryAllReduce(shared, self.world.rank)
        backend = TwoLevelAllReduce(shared, hosts, self.levels.lanes, self.options.releases, narrow)
        backend.told = f"{self.levels}{'; sent as bfloat16' * narrow}"
        return backend

    def _rows(self, store: Any) -> SharedRows | None:
        hosts, small = self.channels.hosts, self.channels.small
        try:
            if hosts.several:
                self.levels = two_levels(self.channels)
                return rows_of_hosts(hosts, small, store.size, store.dtype)
            return None if self.options.wire == "bfloat16" else shared_rows(small, store.size, store.dtype)
        except SeveralHostsError:
            return None
        except NotSharedError as error:
            if self.world.rank == 0 and not self._told:
                needed = f"{store.gradients.nbytes * self.world.size / 2**20:.1f} MiB are needed there"
                told = f"gradients are sent as messages, which is slower on one host: {error}; {needed}"
                warnings.warn(told, UserWarning, stacklevel=2)
            self._told = True
            return None
