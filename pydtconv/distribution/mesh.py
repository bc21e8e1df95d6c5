"""Devices and their arrangement, as `keras.distribution` names them: each process is a device, "cpu:<rank>"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.distribution.mpi.launch import launched, world


def list_devices(device_type: str | None = None) -> list[str]:
    """The devices of all processes: "cpu:0", "cpu:1", ...; none of another type."""
    if device_type is not None and device_type.lower() != "cpu":
        return []
    count = world().size if launched()[0] > 1 else 1
    return [f"cpu:{rank}" for rank in range(count)]


def get_device_count(device_type: str | None = None) -> int:
    """The number of devices of all processes."""
    return len(list_devices(device_type))


class DeviceMesh:
    """Devices in rows and columns.  shape: extents; axis_names: one for each; devices: `list_devices()` by default."""

    def __init__(self, shape: Sequence[int], axis_names: Sequence[str], devices: Any = None) -> None:
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
