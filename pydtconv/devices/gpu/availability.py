"""Whether there is a GPU: CuPy, a driver, a device; and which of them is missing, in one line."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from pydtconv.devices.device import DeviceError


def cupy() -> Any:
    """CuPy.  Raises DeviceError where it is not installed, or cannot be loaded."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("cupy")
    except ImportError as error:
        what = "got none" if getattr(error, "name", None) == "cupy" else f"it cannot be loaded: {_line(error)}"
        raise DeviceError(f"device gpu: expected CuPy (pip install 'pydtconv[gpu]'), {what}") from None


def count() -> int:
    """The number of GPUs.  Raises DeviceError that says whether CuPy, a driver or a device is missing."""
    runtime = cupy().cuda.runtime
    try:
        found = int(runtime.getDeviceCount())
    except Exception as error:  # CuPy's CUDARuntimeError, whose class needs CuPy
        if "NoDevice" in str(error):
            raise DeviceError("device gpu: expected an NVIDIA GPU, got none") from None
        raise DeviceError(f"device gpu: expected NVIDIA's driver, got none that CuPy can use: {_line(error)}") from None
    if not found:
        raise DeviceError("device gpu: expected an NVIDIA GPU, got none")
    return found


def check(number: int) -> Any:
    """CuPy, where there is a GPU of this number.  Raises DeviceError."""
    found = count()
    if number >= found:
        raise DeviceError(f"device gpu:{number}: expected a number below {found}, the GPUs of this machine")
    return cupy()


def missing() -> str | None:
    """What is missing for a GPU, in one line; None where there is one."""
    try:
        count()
    except DeviceError as error:
        return str(error)
    return None


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
