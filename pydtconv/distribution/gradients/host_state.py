"""One copy of a model's weights, and of its optimizer's slots, for all processes of a host."""

from __future__ import annotations

import mmap
from weakref import ref

import numpy as np

from pydtconv.distribution.gradients.shared_memory import shared_rows
from pydtconv.distribution.gradients.staged_sums import StagedSums
from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.optimizers import Optimizer

_WHAT = "the weights that ranks share"


class HostState:
    """The flat arrays of a store and its optimizer, in shared memory, and the sums by which all change them.

    Variables are views that cannot be written: what a process assigns it has for itself, until the state is shared
    anew (see `holds`).  All processes must make it at the same time, with equal values.  Raises NotSharedError in all.
    """

    def __init__(self, store: ParameterStore, optimizer: Optimizer, communicator: Communicator) -> None:
        slots = optimizer.flat_slots(store)
        each = -(-max(store.parameters.nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        pages = -(-(1 + len(slots)) * each // mmap.PAGESIZE // communicator.size)
        self.sums = StagedSums(communicator, store.itemsize)
        memory = shared_rows(communicator, pages * mmap.PAGESIZE, "uint8")
        region = memory.rows.reshape(-1)
        nbytes = store.parameters.nbytes
        arrays = [region[i * each : i * each + nbytes].view(store.dtype) for i in range(1 + len(slots))]
        flats = dict(zip(slots, arrays[1:], strict=True))
        if communicator.rank == 0:
            store.copy_into(arrays[0])
            memory.forget_pages()  # of slots a process only needs its part
            optimizer.copy_slots_into(flats)
        memory.forget_pages()
        communicator.allreduce(np.zeros(1), _WHAT)
        store.place(arrays[0], shared=True)
        optimizer.place_slots(flats, shared=True)
        self._optimizer = ref(optimizer)
        self._moved = Variable.moved

    def holds(self, store: ParameterStore, optimizer: Optimizer) -> bool:
        """Whether it is this optimizer's, and nobody has assigned to a variable or a slot."""
        if self._moved != Variable.moved and store.shared and store.holds_all and optimizer.holds_slots(store):
            self._moved = Variable.moved
        return self._optimizer() is optimizer and self._moved == Variable.moved


def unshare(store: ParameterStore, optimizer: Optimizer) -> None:
    """Gives this process arrays of its own, with the values that it sees."""
    flats = {name: np.zeros(store.size, store.dtype) for name in optimizer.flat_slots(store)}
    optimizer.copy_slots_into(flats)
    optimizer.place_slots(flats)
    parameters = np.zeros(store.size, store.dtype)
    store.copy_into(parameters)
    store.place(parameters)
