"""Arrays of the device "host".

They have what the code for GPUs uses of CuPy's arrays, and refuse what those refuse: NumPy takes them for no arrays.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np


class HostArray:
    """An array that only kernels and the device's own copies may read and write.  memory: where it lies."""

    held_by = "host"

    def __init__(self, memory: np.ndarray) -> None:
        self.memory = memory

    @property
    def shape(self) -> tuple[int, ...]:
        return self.memory.shape

    @property
    def dtype(self) -> np.dtype:
        return self.memory.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        return self.memory.strides

    @property
    def ndim(self) -> int:
        return self.memory.ndim

    @property
    def size(self) -> int:
        return self.memory.size

    @property
    def itemsize(self) -> int:
        return self.memory.itemsize

    @property
    def nbytes(self) -> int:
        return self.memory.nbytes

    @property
    def flags(self) -> Any:
        return self.memory.flags

    @property
    def data(self) -> Any:
        """`data.ptr` is the address, as CuPy has it."""
        return SimpleNamespace(ptr=self.memory.ctypes.data)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        found = self.memory.__array_interface__
        return {name: found[name] for name in ("shape", "typestr", "data", "strides")} | {"version": 3}

    @property
    def T(self) -> HostArray:
        return HostArray(self.memory.T)

    def __getitem__(self, key: Any) -> HostArray:
        return HostArray(np.asarray(self.memory[key]) if _is_view(key) else _refuse("index by positions"))

    def reshape(self, *shape: Any) -> HostArray:
        found = self.memory.reshape(*shape)
        return HostArray(found if self.size == 0 or np.may_share_memory(found, self.memory) else _refuse("copy"))

    def transpose(self, *axes: Any) -> HostArray:
        return HostArray(self.memory.transpose(*axes))

    def view(self, dtype: Any) -> HostArray:
        return HostArray(self.memory.view(dtype))

    def fill(self, value: Any) -> None:
        self.memory.fill(value)

    def get(self) -> np.ndarray:
        """A copy that is NumPy's."""
        return self.memory.copy()

    def set(self, value: np.ndarray) -> None:
        """Takes over the elements of a NumPy array of the same shape and dtype."""
        if value.shape != self.shape or value.dtype != self.dtype:
            raise ValueError(f"set: expected {self.shape} {self.dtype}, got {value.shape} {value.dtype}")
        self.memory[...] = value

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("an array of the device 'host' is not taken for a NumPy array; use .get() to copy it")

    def __len__(self) -> int:
        return len(self.memory)

    def __repr__(self) -> str:
        return f"<HostArray shape={self.shape} dtype={self.dtype}>"


def _is_view(key: Any) -> bool:
    keys = key if isinstance(key, tuple) else (key,)
    return all(isinstance(one, (int, np.integer, slice)) or one is None or one is Ellipsis for one in keys)


def _refuse(what: str) -> Any:
    raise TypeError(f"an array of the device 'host' cannot {what}")
