"""This machine's processor: arrays are NumPy's."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from pydtconv.devices.device import Device
from pydtconv.kernels.base import Call, scratch

#: the arena begins at a page, so that parts of it can be written to disk
PAGE = 4096


class CPU(Device):
    """Kernels are called; nothing is copied."""

    name = "cpu"
    is_host = True

    def arena(self, nbytes: int) -> np.ndarray:
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
