"""Devices by name: "cpu", "gpu" (the first one), "gpu:1", "host"."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import hooks
from pydtconv.devices.cpu import CPU
from pydtconv.devices.device import Device
from pydtconv.naming import device_name

_made: dict[str, Device] = {"cpu": CPU()}


@hooks.device.fill
def get(name: str) -> Device:
    """The device of a name.

    Raises ValueError for a name that is none, DeviceError, in one line, where CuPy, a driver or the device is missing.
    """
    name = device_name(name)
    if name not in _made:
        kind, _, number = name.partition(":")
        if kind == "gpu":
            from pydtconv.devices.gpu import GPU

            _made[name] = GPU(int(number))
        else:
            from pydtconv.devices.host import Host

            _made[name] = Host()
    return _made[name]


def of(array: Any) -> Device:
    """The device that an array lies on.  Raises TypeError for what is no array."""
    if isinstance(array, np.ndarray):
        return _made["cpu"]
    if not hasattr(array, "__cuda_array_interface__"):
        raise TypeError(f"expected an array of NumPy or of a device, got {type(array).__name__}")
    held = getattr(array, "held_by", None)
    return get("host") if held == "host" else get(f"gpu:{array.device.id}")
