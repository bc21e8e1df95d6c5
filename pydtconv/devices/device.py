"""What a plan asks of a device: an arena, arrays in it, copies, and what binds a pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv.kernels.base import Call


class DeviceError(RuntimeError):
    """A device that is not there, or that cannot do what is asked; the message says what is missing."""


class Device:
    """Base of all devices.

    name: as `set_device` takes it ("cpu", "gpu:0", "host").  is_host: whether its arrays are NumPy's, so that the
    values of variables are computed with where they lie.
    """

    name: str = ""
    is_host: bool = False
    #: whether steps are captured after their first run
    captures: bool = False

    def arena(self, nbytes: int) -> Any:
        """Memory for the tensors of a plan: a 1-D array of bytes."""
        raise NotImplementedError

    def array(self, arena: Any, offset: int, shape: tuple[int, ...], dtype: Any, strides: Any) -> Any:
        """An array in an arena, from a byte on."""
        raise NotImplementedError

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array of its own."""
        raise NotImplementedError

    def put(self, target: Any, value: np.ndarray) -> None:
        """Copies an array of the host to one of the device, of the same shape and dtype, behind what was started."""
        raise NotImplementedError

    def get(self, source: Any) -> np.ndarray:
        """A copy on the host of an array of the device, when all that was started is done."""
        raise NotImplementedError

    def results(self, outputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The results of a run by name, on the host."""
        raise NotImplementedError

    def launcher(self) -> Any:
        """What the passes of one plan are bound by; None where kernels need nothing (see launcher.py)."""
        raise NotImplementedError

    def bind_copy(self, source: Any, target: Any) -> Call:
        """What copies one array of the device to another of its shape."""
        raise NotImplementedError

    def bind_add(self, source: Any, total: Any) -> Call:
        """What adds one array of the device to another of its shape."""
        raise NotImplementedError

    def room(self) -> int | None:
        """Bytes that can be allocated; None where that is not known, or is what the system has."""
        return None

    def capture(self, calls: Sequence[Call]) -> Call | None:
        """One call that starts what all of these start, recorded; None where that cannot be.  It runs nothing."""
        raise NotImplementedError

    def describe(self) -> list[tuple[str, str]]:
        """Lines of what there is to say of the device, as (label, text)."""
        return [(self.name, "")]
