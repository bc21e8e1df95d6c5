"""Variables on a device that has memory of its own: copies that follow the values on the host, and the other way round.

One side at a time has the values.  A step takes them to the device and leaves them there; whoever asks for a variable's
`value` on the host (a checkpoint, a callback, the user) brings them all back first.  So training copies none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.devices.device import Device
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore


class Mirror:
    """The variables of one model on a device: those of a store in its flat arrays, the others one by one."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.on_device = False
        self._flat: list[tuple[np.ndarray, Any]] = []
        self._alone: dict[int, tuple[Variable, Any]] = {}
        self._watched: list[Variable] = []

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(int(twin.nbytes) for _, twin in (*self._flat, *self._alone.values()))

    def twin(self, flat: np.ndarray) -> Any:
        """The device's array of a flat array of the host."""
        for known, twin in self._flat:
            if known is flat:
                return twin
        twin = self.device.zeros(flat.shape, flat.dtype)
        if self.on_device:
            self.device.put(twin, flat)
        self._flat.append((flat, twin))
        return twin

    def array_of(self, variable: Variable) -> Any:
        """The device's array of a variable that lies in no store."""
        if id(variable) not in self._alone:
            value = np.ascontiguousarray(variable.array)
            twin = self.device.zeros(value.shape, value.dtype)
            self._alone[id(variable)] = variable, twin
            if self.on_device:
                self.device.put(twin, value)
                self._watch(variable)
        return self._alone[id(variable)][1]

    def to_device(self, variables: Sequence[Variable]) -> None:
        """Takes all values to the device, where they are not there.

        variables: all those that lie in flat arrays, slots of optimizers among them.
        """
        if self.on_device:
            return
        everything = [*variables, *(variable for variable, _ in self._alone.values())]
        for variable in everything:
            variable.array  # noqa: B018  (another device may have it)
        for flat, twin in self._flat:
            self.device.put(twin, flat)
        for variable, twin in self._alone.values():
            self.device.put(twin, np.ascontiguousarray(variable.array))
        self.on_device = True
        for variable in everything:
            self._watch(variable)

    def to_host(self) -> None:
        """Brings all values back to the host."""
        if not self.on_device:
            return
        for flat, twin in self._flat:
            flat[...] = self.device.get(twin)
        for variable, twin in self._alone.values():
            variable.host_array[...] = self.device.get(twin).reshape(variable.shape)
        self.on_device = False  # not before: where the device fails, what the host has is old
        for variable in self._watched:
            if variable.mirror is self:
                variable.mirror = None
        self._watched = []

    def _watch(self, variable: Variable) -> None:
        variable.watch(self)
        self._watched.append(variable)


class DeviceStore(ParameterStore):
    """A store whose steps run on a device; its flat arrays of the host are what variables are views of."""

    def __init__(self, variables: Sequence[Variable], mirror: Mirror) -> None:
        super().__init__(variables)
        self.mirror = mirror
        self._on_device: Any = None
        self.slot_variables: list[Variable] = []

    @property
    def working_parameters(self) -> Any:
        return self.mirror.twin(self.parameters)

    @property
    def working_gradients(self) -> Any:
        if self._on_device is None:
            self._on_device = self.mirror.device.zeros((self.size,), self.dtype)
        return self._on_device

    def working_slot(self, flat: np.ndarray) -> Any:
        return self.mirror.twin(flat)

    @property
    def gradients(self) -> np.ndarray:
        """A copy of the gradients on the host."""
        return self.mirror.device.get(self.working_gradients)

    @gradients.setter
    def gradients(self, array: np.ndarray) -> None:
        raise NotImplementedError(f"gradients: device {self.mirror.device.name} keeps them in memory of its own")

    def put_gradient(self, variable: Variable, gradient: np.ndarray) -> None:
        place = self.of(variable, self.working_gradients)
        self.mirror.device.put(place, np.ascontiguousarray(gradient, variable.dtype))

    def begin_update(self) -> None:
        self.mirror.to_device([*self.variables, *self.slot_variables])

    def watch_slots(self, slots: Sequence[Variable]) -> None:
        self.mirror.to_host()
        self.slot_variables = list(slots)
