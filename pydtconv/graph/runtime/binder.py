"""Binds the steps of a plan to memory: turns views into arrays."""

from __future__ import annotations

import functools
from typing import Protocol

import numpy as np

from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.graph.memory.storage import Storage, View
from pydtconv.graph.runtime.memory import Memory
from pydtconv.graph.schedule.steps import LossGradient, ParameterGradient, Step
from pydtconv.kernels.base import Call


class Updater(Protocol):
    """What applies gradients while backward runs: an optimizer."""

    def begin(self, store: ParameterStore) -> None: ...

    def apply_part(self, part: slice, gradients: np.ndarray | None = None) -> None: ...

    def end(self) -> None: ...


class Binder:
    """What the steps of one plan are bound to.

    waits: of the asynchronous steps bound so far, what waits for them.
    """

    def __init__(self, graph: Graph, memory: Memory, updater: Updater | None) -> None:
        self.training = graph.training
        self.state = memory.state
        self.waits: dict[Step, Call] = {}
        self._memory = memory
        self._updater = updater
        self._streams = {node: index for index, node in enumerate(graph.nodes)}

    def stream(self, node: Node) -> int:
        """A number of its own for every node, for random numbers."""
        return self._streams[node]

    def update(self, variable: Tensor, gradient: np.ndarray, rows: slice | None) -> Call:
        """The optimizer's call for a variable by its gradient (1-D), or for some rows of it."""
        assert self._memory.store is not None
        assert self._updater is not None
        assert variable.variable is not None
        part = self._memory.store.slice_of(variable.variable)
        if rows is not None:
            first = part.start + rows.start * (variable.spec.size // (variable.spec.shape[0] or 1))
            part = slice(first, first + gradient.size)
        return functools.partial(self._updater.apply_part, part, gradient)

    def array(self, view: View) -> np.ndarray:
        """The array of a view."""
        buffer = view.buffer
        if isinstance(buffer, Storage):
            return view.array(self._memory.arena)
        if isinstance(buffer, LossGradient):
            return np.ones((), view.spec.dtype)
        if isinstance(buffer, ParameterGradient):
            assert self._memory.store is not None
            assert buffer.tensor.variable is not None
            return self._memory.store.gradient_of(buffer.tensor.variable)
        if buffer.constant is not None:
            return buffer.constant.reshape(view.spec.shape)
        return buffer.variable.value.reshape(view.spec.shape)
