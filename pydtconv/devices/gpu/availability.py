"""Whether there is a GPU: CuPy, a driver, a device, libraries; and which of them is missing, in one line."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from pydtconv.devices.device import DeviceError

#: of NVIDIA's, which CuPy loads when they are first used
LIBRARIES = ("cublas", "nvrtc")


def cupy() -> Any:
    """CuPy.  Raises DeviceError where it is not installed, or cannot be loaded."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("cupy")
    except ImportError as error:
        what = "got none" if getattr(error, "name", None) == "cupy" else f"it cannot be loaded: {_line(error)}"
        raise DeviceError(f"device gpu: expected CuPy (pip install 'pydtconv[gpu]'), {what}") from None


def library(name: str) -> Any:
    """One of NVIDIA's libraries as CuPy has it: "cublas", "nvrtc".  Raises DeviceError where it cannot be loaded."""
    try:
        return getattr(importlib.import_module("cupy_backends.cuda.libs"), name)
    except (ImportError, AttributeError) as error:
        text = (
            f"device gpu: expected NVIDIA's {name} (pip install 'pydtconv[gpu]'), it cannot be loaded: {_line(error)}"
        )
        raise DeviceError(text) from None


def count() -> int:
    """The number of GPUs.  Raises DeviceError that says whether CuPy, a driver, a device or a library is missing."""
    runtime = cupy().cuda.runtime
    try:
        found = int(runtime.getDeviceCount())
    except Exception as error:  # CuPy's CUDARuntimeError, whose class needs CuPy
        if "NoDevice" in str(error):
            raise DeviceError("device gpu: expected an NVIDIA GPU, got none") from None
        raise DeviceError(f"device gpu: expected NVIDIA's driver, got none that CuPy can use: {_line(error)}") from None
    if not found:
        raise DeviceError("device gpu: expected an NVIDIA GPU, got none")
    for name in LIBRARIES:
        library(name)
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
