"""Where kernels for GPUs are tested: on the device "host", and on a GPU where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pydtconv import devices
from pydtconv.devices.gpu import missing

DEVICES = ["host", *([pytest.param("gpu", marks=pytest.mark.gpu)] if missing() is None else [])]
on_each = pytest.mark.parametrize("device", DEVICES)


def there(device: str, array: np.ndarray) -> Any:
    """A copy of an array on a device."""
    on: Any = devices.get(device)
    made = on.zeros(array.shape, array.dtype)
    on.put(made, array)
    return made


def back(device: str, array: Any) -> np.ndarray:
    """A copy of an array of a device."""
    on: Any = devices.get(device)
    found: np.ndarray = on.get(array)
    return found
