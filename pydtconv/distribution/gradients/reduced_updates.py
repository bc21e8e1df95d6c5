"""An optimizer that applies the sums of gradients over the processes while backward runs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pydtconv.distribution.gradients.staged_sums import StagedSums
from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.kernels.base import Call


class ReducedUpdates:
    """The updater of a plan that applies gradients (see Executor): the optimizer, behind sums over the processes.

    No gradient outlives its step of the plan by more than a bucket.
    """

    def __init__(self, optimizer: Any, communicator: Communicator) -> None:
        self.optimizer = optimizer
        self.communicator = communicator
        self._sums: StagedSums | None = None
        self._counts = True
        self._told = ""

    def prepare(self, sums: StagedSums | None, counts: bool, step: int) -> None:
        """Before a step.  sums: of processes that update a part each of one copy of the weights; None where each has
        its own.  counts: False where this process has no samples, and its gradients are zero.
        """
        self._sums, self._counts = sums, counts
        self._told = f"step {step}: the gradients during backward"
        if sums is not None:
            sums.begin(self._told)

    def begin(self, store: ParameterStore) -> None:
        self.optimizer.begin(store)

    def bind_part(self, part: slice, gradients: np.ndarray) -> Call:
        return partial(self._add, part, gradients)

    def _add(self, part: slice, gradients: np.ndarray) -> None:
        if self._sums is not None:
            counted = gradients if self._counts else None
            self._sums.add(part, counted, gradients.dtype.name, self.optimizer.apply_part)
            return
        if not self._counts:
            gradients.fill(0)
        self.optimizer.apply_part(part, self.communicator.allreduce(gradients, self._told))

    def end(self) -> None:
        if self._sums is not None:
            self._sums.finish(self.optimizer.apply_part)
        self.optimizer.end()
