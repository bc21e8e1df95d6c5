"""Pickles of data sets: CIFAR's Python version, and lists of the numbers of words.

Stand-ins of this module keep bytes, shape and type of arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.files.pickles import StandIn, Unpickler
from pydtconv.files.reading import BadFileError, elements_of

#: instructions of a pickle of lists: one for each number
_MOST_WORDS = 1 << 23
_MODULES = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric")


class _Dtype(StandIn):
    """Stands for numpy.dtype."""

    def __init__(self, name: Any = "u1", *_: Any) -> None:
        name = name.decode() if isinstance(name, bytes) else name
        if name not in ("b1", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"):
            raise BadFileError("expected an array of numbers, got another dtype")
        self.dtype = np.dtype(name)

    def take(self, state: Any) -> None:
        order = state[1].decode() if isinstance(state[1], bytes) else state[1]
        self.dtype = self.dtype.newbyteorder(">" if order == ">" else "<" if order == "<" else "=")


class _ListsDtype(_Dtype):
    """The same where lists may be in an array, too."""

    def __init__(self, name: Any = "u1", *_: Any) -> None:
        if name in ("O8", b"O8"):
            self.dtype = np.dtype(object)
        else:
            super().__init__(name)


class _Array(StandIn):
    """Stands for numpy.ndarray, as it comes out of a pickle: empty first, then with its state."""

    value: np.ndarray | None = None

    def take(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        if isinstance(dtype, _Dtype) and dtype.dtype.kind == "O":
            self.value = _of_lists(shape, raw)
            return
        self.value = _array(raw, dtype, shape, "F" if fortran else "C")


def as_objects(lists: list[list[int]]) -> np.ndarray:
    """The lists as an array (n,) of them, whatever their lengths."""
    found = np.empty(len(lists), object)
    for i, each in enumerate(lists):
        found[i] = each
    return found


def _of_lists(shape: Any, lists: Any) -> np.ndarray:
    numbers = isinstance(lists, list) and all(isinstance(each, list) and {*map(type, each)} <= {int} for each in lists)
    if not numbers or shape != (len(lists),):
        raise BadFileError("expected an array (n,) of lists of integers")
    return as_objects(lists)


def _array(raw: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    if not isinstance(dtype, _Dtype) or not isinstance(raw, (bytes, bytearray)):
        raise BadFileError("expected an array's type and bytes")
    if dtype.dtype.kind == "O":
        raise BadFileError("expected an array of numbers, got lists")
    if elements_of(shape) * dtype.dtype.itemsize != len(raw):
        raise BadFileError(f"expected {len(raw)} bytes for an array of shape {shape}")
    return np.frombuffer(raw, dtype.dtype).reshape(shape, order="F" if order == "F" else "C")


def _known(dtype: type[_Dtype]) -> dict[tuple[str, str], Any]:
    """The stand-ins by module and name."""
    stand_ins = {"_reconstruct": lambda *_: _Array(), "_frombuffer": _array, "ndarray": _Array, "dtype": dtype}
    return {(module, name): stand_in for module in _MODULES for name, stand_in in stand_ins.items()}


def load_lists(data: bytes) -> np.ndarray:
    """The array (n,) of lists of integers of a pickle.  Raises BadFileError and what damaged pickles lead to."""
    known = {**_known(_ListsDtype), ("_codecs", "encode"): lambda text, encoding: text.encode("latin1")}
    array = Unpickler(data, known, "lists", _MOST_WORDS).load()
    if not isinstance(array, _Array) or array.value is None or array.value.dtype != object:
        raise BadFileError("expected an array of lists")
    return array.value


def load_entries(data: bytes) -> dict[bytes, Any]:
    """The entries of a file by name, arrays among them.  Raises BadFileError and what damaged pickles lead to."""
    left = 2 * len(data)

    def encoded(text: Any, encoding: Any) -> bytes:
        """What old protocols write bytes as: text in latin1, which may be turned often."""
        nonlocal left
        if not isinstance(text, str) or encoding not in ("latin1", b"latin1"):
            raise BadFileError("expected bytes as text in latin1")
        left -= len(text)
        if left < 0:
            raise BadFileError("expected no more bytes than the file has")
        return text.encode("latin1")

    entries = Unpickler(data, {**_known(_Dtype), ("_codecs", "encode"): encoded}, "a file of CIFAR").load()
    if not isinstance(entries, dict):
        raise BadFileError(f"expected entries by name, got a {type(entries).__name__}")
    return {name: value.value if isinstance(value, _Array) else value for name, value in entries.items()}
