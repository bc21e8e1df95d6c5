"""Devices and their arrangement, as `keras.distribution` names them: each process is a device, "cpu:<rank>"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.distribution.mpi.launch import world
from pydtconv.support.launcher import launched


def list_devices(device_type: str | None = None) -> list[str]:
    """The devices of all processes: "cpu:0", "cpu:1", ...; none of another type."""
    if device_type is not None and device_type.lower() != "cpu":
        return []
    count = world().size if launched()[0] > 1 else 1
    return [f"cpu:{rank}" for rank in range(count)]


def get_device_count(device_type: str | None = None) -> int:
    """The number of devices of all processes."""
    return len(list_devices(device_type))


def is_positive(value: Any) -> bool:
    """Whether a value is an integer of 1 or more."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 1


class DeviceMesh:
    """Devices in rows and columns.  shape: extents; axis_names: one for each; devices: `list_devices()` by default.

    Raises ValueError where they do not fit together, or are no positive integers, or no names.
    """

    def __init__(self, shape: Sequence[int], axis_names: Sequence[str], devices: Any = None) -> None:
        for name, given in (("shape", shape), ("axis_names", axis_names)):
            if isinstance(given, str) or not isinstance(given, Sequence):
                raise ValueError(f"DeviceMesh: {name}: expected a sequence with an entry for each axis, got {given!r}")
        if not all(is_positive(extent) for extent in shape):
            raise ValueError(f"DeviceMesh: shape: expected positive integers, got {tuple(shape)}")
        if not all(isinstance(name, str) for name in axis_names):
            raise ValueError(f"DeviceMesh: axis_names: expected strings, got {list(axis_names)}")
        if not shape or not axis_names or len(shape) != len(axis_names):
            raise ValueError(f"DeviceMesh: expected a name for each axis, got shape={shape}, axis_names={axis_names}")
        devices = np.array(list_devices() if devices is None else devices)
        if math.prod(shape) != devices.size:
            raise ValueError(f"DeviceMesh: expected {math.prod(shape)} devices for shape {shape}, got {devices.size}")
        self.shape = tuple(shape)
        self.axis_names = list(axis_names)
        self.devices = devices.reshape(self.shape)

    def __repr__(self) -> str:
        return f"<DeviceMesh shape={self.shape}, axis_names={self.axis_names}>"
