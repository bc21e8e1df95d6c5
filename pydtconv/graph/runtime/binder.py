"""Binds the steps of a plan to memory: turns views into arrays."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from pydtconv.devices.pinned import PinnedMemory
from pydtconv.devices.updates import Update
from pydtconv.dtypes import BFLOAT16, to_bits
from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.graph.memory.storage import Storage, View
from pydtconv.graph.runtime.memory import Memory
from pydtconv.graph.runtime.scratch_file import ScratchFile
from pydtconv.graph.schedule.steps import LossGradient, ParameterGradient, Step
from pydtconv.kernels.base import Call


class Updater(Protocol):
    """What applies gradients while backward runs: an optimizer."""

    def begin(self, store: ParameterStore) -> None: ...

    def bind_part(self, part: slice, gradients: np.ndarray) -> Call: ...

    def end(self) -> None: ...


class Binder:
    """What the steps of one plan are bound to.

    waits: of the asynchronous steps bound so far, what waits for them.
    """

    def __init__(self, graph: Graph, memory: Memory, updater: Updater | None) -> None:
        self.graph = graph
        self.training = graph.training
        self.state = memory.state
        self.device = memory.device
        self.launcher = memory.device.launcher()
        self.waits: dict[Step, Call] = {}
        self._memory = memory
        self._constants: dict[Tensor, Any] = {}
        self._updater = updater
        # those that draw come first, so that their numbers do not depend on what else is in the graph
        in_order = sorted(graph.nodes, key=lambda node: not node.op.draws)
        self._streams = {node: index for index, node in enumerate(in_order)}

    def stream(self, node: Node) -> int:
        """A number of its own for every node, for random numbers."""
        return self._streams[node] if node.stream is None else node.stream

    def update(self, variable: Tensor, gradient: np.ndarray, rows: slice | None) -> Call:
        """The optimizer's call for a variable by its gradient (1-D), or for some rows of it."""
        assert self._memory.store is not None
        assert self._updater is not None
        assert variable.variable is not None
        store = self._memory.store
        part = store.slice_of(variable.variable)
        if rows is not None:
            words = gradient.itemsize // store.itemsize
            first = part.start + rows.start * (variable.spec.size // (variable.spec.shape[0] or 1)) * words
            part = slice(first, first + gradient.size * words)
        apply = self._updater.bind_part(part, gradient)
        return apply if self.launcher is None else Update(self.launcher, apply)

    def transfers(self) -> ScratchFile | PinnedMemory:
        """The file, or pinned memory, that storages are written to in between."""
        assert self._memory.scratch_file is not None
        return self._memory.scratch_file

    def array(self, view: View) -> np.ndarray:
        """The array of a view."""
        buffer = view.buffer
        if isinstance(buffer, Storage):
            return view.array(self._memory.arena, self.device.array)
        if self.launcher is not None:
            return self._of_device(view)
        if isinstance(buffer, LossGradient):
            return _one(view.spec.dtype)
        if isinstance(buffer, ParameterGradient):
            assert self._memory.store is not None
            assert buffer.tensor.variable is not None
            return self._memory.store.gradient_of(buffer.tensor.variable)
        if buffer.constant is not None:
            return buffer.constant.reshape(view.spec.shape)
        variable = buffer.variable
        reads_all = variable.cut is not None and buffer.shape == variable.shape  # in calls of layers on arrays
        return (variable.array if reads_all else variable.own_array).reshape(view.spec.shape)

    def _of_device(self, view: View) -> Any:
        """The array of a constant, a variable or its gradient, on a device with memory of its own."""
        buffer, store, shape = view.buffer, self._memory.store, view.spec.shape
        if isinstance(buffer, LossGradient):
            return self.launcher.constant(_one(view.spec.dtype)).reshape(shape)
        if isinstance(buffer, ParameterGradient):
            assert store is not None
            assert buffer.tensor.variable is not None
            return store.of(buffer.tensor.variable, store.working_gradients).reshape(shape)
        if buffer.constant is not None:
            if buffer not in self._constants:
                self._constants[buffer] = self.launcher.constant(buffer.constant)
            return self._constants[buffer].reshape(shape)
        if store is not None and buffer.variable in store:
            return store.of(buffer.variable, store.working_parameters).reshape(shape)
        assert self._memory.mirror is not None
        return self._memory.mirror.array_of(buffer.variable).reshape(shape)


def _one(dtype: str) -> np.ndarray:
    return to_bits(1.0).reshape(()) if dtype == BFLOAT16 else np.ones((), dtype)
