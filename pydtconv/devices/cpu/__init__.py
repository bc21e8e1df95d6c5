"""This machine's processor: arrays are NumPy's."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from pydtconv.devices.device import Device
from pydtconv.kernels.base import Call, scratch
from pydtconv.support.machine import memory_left

#: the arena begins at a page, so that parts of it can be written to disk
PAGE = 4096
#: bytes from which on memory comes from the system, and not from what the process has given back to its allocator
FRESH = 32 << 20


class CPU(Device):
    """Kernels are called; nothing is copied."""

    name = "cpu"
    is_host = True

    def arena(self, nbytes: int) -> np.ndarray:
        """Raises MemoryError also where the memory that a container may take does not suffice.

        There the system gives more than there is, and ends the process when it is used.
        """
        left = memory_left() if nbytes >= FRESH else None
        if left is not None and nbytes > left:
            wanted, there = (f"{n / (1 << 20):.1f} MiB" for n in (nbytes, left))
            raise MemoryError(f"Unable to allocate {wanted}: the memory limit of this control group leaves {there}")
        return scratch(nbytes, PAGE)

    def array(self, arena: np.ndarray, offset: int, shape: tuple[int, ...], dtype: Any, strides: Any) -> np.ndarray:
        return np.ndarray(shape, dtype, arena, offset, strides)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.zeros(shape, dtype)

    def put(self, target: np.ndarray, value: np.ndarray) -> None:
        np.copyto(target, value, casting="unsafe")

    def get(self, source: np.ndarray) -> np.ndarray:
        return source.copy()

    def results(self, outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return outputs  # type: ignore[return-value]

    def launcher(self) -> None:
        return None

    def bind_copy(self, source: np.ndarray, target: np.ndarray) -> Call:
        return functools.partial(np.copyto, target, source)

    def bind_add(self, source: np.ndarray, total: np.ndarray) -> Call:
        return functools.partial(np.add, total, source, total)
