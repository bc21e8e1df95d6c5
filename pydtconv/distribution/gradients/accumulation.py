"""Gradients that optimizers accumulate (`gradient_accumulation_steps`): one sum over processes for each update.

Between two updates each process adds up the gradients of its own samples.  The gradients of an update take what has
been added up with them when they are summed over processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.optimizers import Optimizer


class Accumulation:
    """Says which steps of optimizers sum gradients over processes.  All processes ask the same things in one order.

    A variable's accumulator has either the sum over all processes, in all of them, or this process's part of it.
    peers: the processes with the same columns of variables that are cut.
    """

    def __init__(self, communicator: Communicator, peers: Communicator | None = None) -> None:
        self.communicator, self.peers = communicator, peers
        #: the variables, by their ids, whose accumulators have this process's part
        self._parts: dict[Optimizer, dict[int, Variable]] = {}

    def begin(self, optimizer: Optimizer, variables: Sequence[Variable], whole: bool) -> bool:
        """Before a step by gradients of these variables; returns whether these are summed over processes.

        whole: the gradients of this step are needed as sums, even where it makes no update.
        """
        if whole or not optimizer.gradient_accumulation_steps:
            if optimizer in self._parts:
                self._sum(optimizer)
            return True
        parts = self._parts.setdefault(optimizer, {})
        for variable in variables:
            if id(variable) not in parts:
                parts[id(variable)] = variable
                if self._over(variable).rank:  # what is whole is the first process's part
                    optimizer.accumulated(variable).fill(0)
        return optimizer.updates_next

    def take(self, optimizer: Optimizer, variable: Variable, gradient: np.ndarray) -> None:
        """Adds what this process has accumulated for a variable to its gradient, which is about to be summed."""
        parts = self._parts.get(optimizer)
        if parts is not None and parts.pop(id(variable), None) is not None:
            optimizer.take_accumulated(variable, gradient)
            if not parts:
                del self._parts[optimizer]

    def sum_store(self, optimizer: Optimizer, store: ParameterStore, portion: float, whole: bool) -> None:
        """Makes a store's gradients the sums over all processes, or leaves them to be accumulated, as `begin` says.

        portion: this process's part of the samples.
        """
        if not portion:
            store.gradients.fill(0)
        if self.begin(optimizer, store.variables, whole):
            for variable in store.variables:
                self.take(optimizer, variable, store.gradient_of(variable))
            parts = [store.numbers(store.gradients, part, dtype) for part, dtype in store.runs(slice(0, store.size))]
            for part, total in zip(parts, summed(self.communicator, parts, "the sums of the gradients"), strict=True):
                part[...] = total

    def settle(self) -> None:
        """Makes all accumulators sums over all processes."""
        for optimizer in list(self._parts):
            self._sum(optimizer)

    def _over(self, variable: Variable) -> Communicator:
        """Of the processes that have gradients of the same elements of a variable."""
        return self.communicator if variable.cut is None or self.peers is None else self.peers

    def _sum(self, optimizer: Optimizer) -> None:
        variables = self._parts.pop(optimizer).values()
        for over in filter(None, (self.communicator, self.peers)):
            arrays = [optimizer.accumulated(variable) for variable in variables if self._over(variable) is over]
            totals = summed(over, arrays, "the sums of the accumulated gradients")
            for array, total in zip(arrays, totals, strict=True):
                array[...] = total


def summed(communicator: Communicator, arrays: Sequence[Any], what: str) -> list[np.ndarray]:
    """The sums of these arrays over all processes, by one message for each dtype.  what: for messages."""
    found: list[np.ndarray] = list(arrays)
    for dtype in dict.fromkeys(array.dtype for array in arrays):
        places = [i for i, array in enumerate(arrays) if array.dtype == dtype]
        flat = communicator.allreduce(np.concatenate([np.ravel(arrays[i]) for i in places]), what)
        starts = np.cumsum([0, *(arrays[i].size for i in places)])
        for i, start in zip(places, starts, strict=False):
            found[i] = flat[start : start + arrays[i].size].reshape(arrays[i].shape)
    return found
