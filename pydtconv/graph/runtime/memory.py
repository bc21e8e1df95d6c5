"""What the plans of one model share when they run."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from pydtconv.graph.ir.graph import Tensor
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.graph.runtime.hooks import Hooks
from pydtconv.kernels.base import RunState, scratch


class Memory:
    """What the plans of one model share: the arena, the parameter store, the state of random operators, watchers.

    hooks: called by every plan, within those of an executor: after its `before` and before its `after`.
    keeps_gradients: set by whoever reads `store.gradients` after a step, or while it runs: steps that are planned from
    then on leave the gradients there, and the optimizer comes afterwards.
    """

    def __init__(self) -> None:
        self.arena = np.empty(0, np.uint8)
        self.store: ParameterStore | None = None
        self.state = RunState()
        self.hooks: list[Hooks] = []
        self.keeps_gradients = False
        self.generation = 0

    def reserve(self, nbytes: int) -> None:
        """Makes the arena at least this large; executors bind anew when it had to grow."""
        if nbytes > self.arena.nbytes:
            self.arena = np.empty(0, np.uint8)  # give the old one back first
            self.arena = scratch(nbytes)
            self.generation += 1

    def make_store(self, order: Sequence[Tensor], dtype: str) -> None:
        """Moves the variables into a flat store, if they are not all in the present one."""
        variables = [tensor.variable for tensor in order if tensor.variable is not None]
        if self.store is None or any(variable not in self.store for variable in variables):
            self.store = ParameterStore(variables, dtype)
            self.generation += 1
            _return_freed_memory()


def _return_freed_memory() -> None:
    """Gives the variables' former arrays back to the system, which glibc would keep; elsewhere nothing is done."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
