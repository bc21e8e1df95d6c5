"""`.pth` files of PyTorch: dicts of tensors, read without PyTorch and without running anything of them.

The file is a zip: `data.pkl` names tensors, by storage, offset, shape and strides, and the storages are members of
their own.  Each class or function that the pickle may name stands for a harmless one of this module.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pydtconv.files.archives import Archive
from pydtconv.files.pickles import Unpickler
from pydtconv.files.reading import BadFileError, elements_of, parsing, unpacked_limit

#: bytes of data.pkl
_PICKLE_LIMIT = 1 << 24
_STORAGES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "BFloat16Storage": "<u2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "?",
}


class _Storage(NamedTuple):
    """A member of the archive: its dtype's name and its number of elements."""

    kind: str
    key: str
    elements: int


class _Stub(NamedTuple):
    """A class of PyTorch that a pickle names and that means nothing here but its name."""

    name: str


class _Tensors(Unpickler):
    """Unpickles dicts of tensors."""

    def __init__(self, data: bytes, archive: Archive, folder: str, big: bool) -> None:
        known = {
            **{("torch", name): _Stub(name) for name in (*_STORAGES, "device")},
            ("collections", "OrderedDict"): lambda: OrderedDict(),
            ("torch._utils", "_rebuild_tensor_v2"): self._tensor,
            ("torch._utils", "_rebuild_parameter"): lambda data, *rest: data,
            ("torch", "Size"): lambda *extents: tuple(*extents),
        }
        super().__init__(data, known, "a dict of tensors")
        self._archive, self._folder, self._big = archive, folder, big
        self._arrays: dict[str, np.ndarray] = {}
        self._left = unpacked_limit(os.path.getsize(archive.path))

    def persistent_load(self, pid: Any) -> _Storage:
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage" or not isinstance(pid[1], _Stub):
            raise BadFileError("expected the storage of a tensor")
        if type(pid[2]) is not str or type(pid[4]) is not int:
            raise BadFileError("expected the name of a storage and its size")
        return _Storage(pid[1].name, pid[2], pid[4])

    def _tensor(self, storage: Any, offset: Any, shape: Any, strides: Any, *rest: Any) -> np.ndarray:
        if not isinstance(storage, _Storage) or type(offset) is not int or offset < 0:
            raise BadFileError("expected a tensor's storage and its offset")
        count, array = elements_of(shape), self._array(storage)
        elements_of(strides)
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        if count and last >= len(array):
            raise BadFileError(f"expected a tensor within {len(array)} elements, got shape {shape} from {offset} on")
        if count > len(array):
            raise BadFileError(f"expected a tensor of {len(array)} elements at most, got shape {shape}")
        self._left -= count * max(array.itemsize, 4)
        if self._left < 0:
            raise BadFileError(f"expected tensors of {len(self._arrays)} storages, got many times as many elements")
        steps = [step * array.itemsize for step in strides]
        made = np.lib.stride_tricks.as_strided(array[offset:], shape, steps) if count else np.zeros(shape)
        if storage.kind == "BFloat16Storage":
            return (made.astype("<u4") << 16).view("<f4")
        return np.array(made)

    def _array(self, storage: _Storage) -> np.ndarray:
        if storage.key not in self._arrays:
            dtype = np.dtype(_STORAGES[storage.kind]).newbyteorder(">" if self._big else "<")
            name = f"{self._folder}data/{storage.key}"
            size = self._archive.size(name)
            if size != storage.elements * dtype.itemsize:
                raise BadFileError(f"{name}: expected {storage.elements} elements of {dtype}, got {size} bytes")
            self._arrays[storage.key] = np.frombuffer(self._archive.read(name, size), dtype)
        return self._arrays[storage.key]


def read_torch(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a `.pth` file by name: of a dict, or of the dict "state_dict" or "model" in it.

    Raises BadFileError for any other file, and for what is no dict of tensors.
    """
    with Archive(path, "a .pth file as torch.save writes it") as archive, parsing(path, "a dict of tensors"):
        (name,) = [name for name in archive.names if name.rpartition("/")[2] == "data.pkl"] or [""]
        if not name:
            raise BadFileError("expected a .pth file as torch.save writes it, found no data.pkl in it")
        data = archive.read(name, _PICKLE_LIMIT)
        folder = name.removesuffix("data.pkl")
        order = f"{folder}byteorder"
        big = order in archive.names and archive.read(order, 16).strip() == b"big"
        found = _Tensors(data, archive, folder, big).load()
    for key in ("state_dict", "model"):
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            found = found[key]
    if not isinstance(found, dict) or not found:
        raise BadFileError(f"{path}: expected a dict of tensors, got a {type(found).__name__}")
    tensors = {str(key): value for key, value in found.items() if isinstance(value, np.ndarray)}
    if len(tensors) != len(found):
        other = next(key for key, value in found.items() if not isinstance(value, np.ndarray))
        raise BadFileError(f"{path}: {other}: expected a tensor, got a {type(found[other]).__name__}")
    return tensors
