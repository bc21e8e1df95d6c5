"""The pickles of CIFAR's Python version, read without running anything of them.

A pickle names classes and functions that are to be called.  Here each name that the files have stands for a harmless
stand-in of this module, which keeps bytes, shape and type and makes an array of them; any other name is an error.
"""

from __future__ import annotations

import codecs
import math
import pickle
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

import numpy as np

_MODULES = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric")


class _Dtype:
    """Stands for numpy.dtype."""

    def __init__(self, name: Any = "u1", *_: Any) -> None:
        self.dtype = np.dtype(str(name.decode() if isinstance(name, bytes) else name))
        if self.dtype.kind not in "biuf":
            raise pickle.UnpicklingError(f"expected an array of numbers, got dtype {self.dtype}")

    def __setstate__(self, state: Any) -> None:
        order = state[1].decode() if isinstance(state[1], bytes) else state[1]
        self.dtype = self.dtype.newbyteorder(">" if order == ">" else "<" if order == "<" else "=")


class _Array:
    """Stands for numpy.ndarray, as it comes out of a pickle: empty first, then with its state."""

    value: np.ndarray | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        self.value = _array(raw, dtype, shape, "F" if fortran else "C")


def _array(raw: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    if not isinstance(dtype, _Dtype) or not isinstance(raw, (bytes, bytearray)):
        raise pickle.UnpicklingError("expected an array's type and bytes")
    if any(type(extent) is not int or extent < 0 for extent in shape):
        raise pickle.UnpicklingError(f"expected the shape of an array, got {shape!r}")
    if math.prod(shape) * dtype.dtype.itemsize != len(raw):
        raise pickle.UnpicklingError(f"expected {len(raw)} bytes for an array of shape {shape!r}")
    return np.frombuffer(raw, dtype.dtype).reshape(shape, order="F" if order == "F" else "C")


class _Function:
    """A function that the pickle may call but not change."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("expected data, got a change of a function")


class _ArraysOnly(pickle.Unpickler):
    """Unpickles what the files hold, arrays and containers, and refuses to run anything else."""

    def __init__(self, data: bytes) -> None:
        super().__init__(BytesIO(data), encoding="bytes")
        self._left = 2 * len(data)  # bytes that texts may be turned into

    def find_class(self, module: str, name: str) -> Any:
        known: Mapping[str, Any] = {
            "_reconstruct": _Function(lambda *_: _Array()),
            "_frombuffer": _Function(_array),
            "ndarray": _Array,
            "dtype": _Dtype,
        }
        if module in _MODULES and name in known:
            return known[name]
        if (module, name) == ("_codecs", "encode"):
            return _Function(self._encoded)
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into a file of CIFAR")

    def _encoded(self, text: Any, encoding: Any) -> bytes:
        """What old protocols write bytes as: text in latin1."""
        if not isinstance(text, str) or encoding not in ("latin1", b"latin1"):
            raise pickle.UnpicklingError("expected bytes as text in latin1")
        self._left -= len(text)
        if self._left < 0:
            raise pickle.UnpicklingError("expected no more bytes than the file has")
        return codecs.encode(text, "latin1")


def load_entries(data: bytes) -> dict[bytes, Any]:
    """The entries of a file by name, arrays among them.  Raises UnpicklingError and what damaged pickles lead to."""
    entries = _ArraysOnly(data).load()
    if not isinstance(entries, dict):
        raise pickle.UnpicklingError(f"expected entries by name, got a {type(entries).__name__}")
    return {name: value.value if isinstance(value, _Array) else value for name, value in entries.items()}
