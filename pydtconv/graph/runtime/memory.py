"""What the plans of one model share when they run."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from pydtconv.devices import Device
from pydtconv.devices import get as get_device
from pydtconv.devices.accelerator import Accelerator
from pydtconv.devices.pinned import PinnedMemory
from pydtconv.graph.ir.graph import Tensor
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.mirror import DeviceStore, Mirror
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.graph.runtime.hooks import Hooks
from pydtconv.graph.runtime.scratch_file import Observer, ScratchFile
from pydtconv.kernels.base import RunState


class Bound(Protocol):
    """What holds arrays in the arena."""

    def unbind(self) -> None:
        """Lets go of them."""


class Memory:
    """What the plans of one model share: the arena, the parameter store, the state of random operators, watchers.

    hooks: called by every plan, within those of an executor: after its `before` and before its `after`.
    keeps_gradients: set by whoever reads `store.gradients` after a step, or while it runs: steps that are planned from
    then on leave the gradients there, and the optimizer comes afterwards.
    scratch_file: where plans with transfers put what does not fit, a file or pinned memory; None until one is used.
    device: where the arena lies.  mirror: of the variables, on a device with memory of its own.
    """

    def __init__(self, device: Device | None = None) -> None:
        self.device = get_device("cpu") if device is None else device
        self.mirror = None if self.device.is_host else Mirror(self.device)
        self.arena: Any = np.empty(0, np.uint8)
        self.store: ParameterStore | None = None
        self.state = RunState()
        self.hooks: list[Hooks] = []
        self.keeps_gradients = False
        self.scratch_file: ScratchFile | PinnedMemory | None = None
        self._observer: Observer | None = None
        self._bound: weakref.WeakSet[Bound] = weakref.WeakSet()
        self.generation = 0

    def room(self) -> int | None:
        """Bytes that a plan may take on a device, with those that the model has there; None where nobody knows."""
        free = self.device.room()
        held = 0 if self.mirror is None else self.mirror.nbytes
        return None if free is None else free + held + int(self.arena.nbytes)

    def attach(self, bound: Bound) -> None:
        """Who lets go of the arena before another takes its place."""
        self._bound.add(bound)

    def reserve(self, nbytes: int) -> None:
        """Makes the arena at least this large; executors bind anew when it had to grow.

        Raises MemoryError where there is no room; then there is no arena, and the next run asks again.
        """
        if nbytes > self.arena.nbytes:
            self.generation += 1
            for bound in tuple(self._bound):
                bound.unbind()
            self.arena = np.empty(0, np.uint8)  # the old one is given back first
            self.arena = self.device.arena(nbytes)

    def use_scratch_file(self, folder: str, nbytes: int) -> ScratchFile | PinnedMemory:
        """Reserves so many bytes in a file of this folder, or HOST, in pinned memory beside the device.

        Raises OSError where that cannot be.
        """
        if self.scratch_file is None or self.scratch_file.folder != folder:
            self.release_scratch_file()
            self.scratch_file = ScratchFile(folder) if self.device.is_host else self._pinned()
            self.scratch_file.observer = self._observer
            self.generation += 1
        if isinstance(self.scratch_file, PinnedMemory) and nbytes > self.scratch_file.nbytes:
            self.generation += 1  # it moves
            for bound in tuple(self._bound):
                bound.unbind()
        self.scratch_file.reserve(nbytes)
        return self.scratch_file

    def _pinned(self) -> PinnedMemory:
        assert isinstance(self.device, Accelerator)
        return PinnedMemory(self.device)

    def observe_transfers(self, observer: Observer | None) -> None:
        """Who is told of each transfer; None: nobody."""
        self._observer = observer
        if self.scratch_file is not None:
            self.scratch_file.observer = observer

    def release_scratch_file(self) -> None:
        """Gives the file's space back; the next plan that needs one reserves it anew."""
        if self.scratch_file is not None:
            self.scratch_file.close()

    def make_store(self, order: Sequence[Tensor]) -> None:
        """Moves the variables into a flat store, if the present one is not of just these, or has lost some."""
        known = self.has_store_of(order)
        if not known or not self.store.holds_all:  # type: ignore[union-attr]
            variables = [tensor.variable for tensor in order if tensor.variable is not None]
            self.move_to_store(self.store.variables if known else variables)  # type: ignore[union-attr]
            _return_freed_memory()

    def has_store_of(self, order: Sequence[Tensor]) -> bool:
        """Whether there is a store, of these variables and no others: a step leaves those without gradient alone."""
        if self.store is None:
            return False
        return {id(tensor.variable) for tensor in order if tensor.variable is not None} == self.store.ids

    def move_to_store(self, variables: Sequence[Variable]) -> ParameterStore:
        """Moves the variables into a new flat store, in this order."""
        if self.mirror is None:
            self.store = ParameterStore(variables)
        else:
            self.release_variables()
            self.mirror = Mirror(self.device)
            self.store = DeviceStore(variables, self.mirror)
        self.generation += 1
        return self.store

    def release_variables(self) -> None:
        """Brings the values of variables back to the host."""
        if self.mirror is not None:
            self.mirror.to_host()

    def take_variables(self) -> None:
        """Takes the values of variables to the device, before a run."""
        if self.store is not None:
            self.store.begin_update()
        elif self.mirror is not None:
            self.mirror.to_device(())


def _return_freed_memory() -> None:
    """Gives the variables' former arrays back to the system, which glibc would keep; elsewhere nothing is done."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
