"""`.pth` files of PyTorch: dicts of tensors, read without PyTorch and without running anything of them.

The file is a zip: `data.pkl` names tensors, by storage, offset, shape and strides, and the storages are members of
their own.  Of a pickle's instructions only those that such dicts need are taken, and each class or function that it
may name stands for a harmless one of this module.
"""

from __future__ import annotations

import math
import os
import pickle
import pickletools
from collections import OrderedDict
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pydtconv.utils.archives import Archive
from pydtconv.utils.reading import BadFileError, parsing, unpacked_limit

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
#: instructions of pickles that make dicts, lists, tuples, numbers, texts, and call what `find_class` gives
_INSTRUCTIONS = frozenset(
    """APPEND APPENDS BINFLOAT BINGET BININT BININT1 BININT2 BINPERSID BINPUT BINUNICODE BUILD EMPTY_DICT EMPTY_LIST
    EMPTY_TUPLE FRAME GLOBAL LONG1 LONG_BINGET LONG_BINPUT MARK MEMOIZE NEWFALSE NEWTRUE NONE PROTO REDUCE SETITEM
    SETITEMS SHORT_BINUNICODE STACK_GLOBAL STOP TUPLE TUPLE1 TUPLE2 TUPLE3""".split()  # noqa: SIM905
)


class _Storage(NamedTuple):
    """A member of the archive: its dtype's name and its number of elements."""

    kind: str
    key: str
    elements: int


class _Stub(NamedTuple):
    """A class of PyTorch that a pickle names and that means nothing here but its name."""

    name: str


class _Tensors(pickle._Unpickler):  # the one in Python: its memo is a dict
    """Unpickles dicts of tensors."""

    stack: list[Any]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, data: bytes, archive: Archive, folder: str, big: bool) -> None:
        super().__init__(BytesIO(data))
        self._archive, self._folder, self._big = archive, folder, big
        self._arrays: dict[str, np.ndarray] = {}
        self._left = unpacked_limit(os.path.getsize(archive.path))

    def _build(self) -> None:
        """Attributes of dicts are left out; nothing else takes any."""
        self.stack.pop()
        if type(self.stack[-1]) is not OrderedDict:
            raise BadFileError(f"expected attributes of a dict, found some of a {type(self.stack[-1]).__name__}")

    def _set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._enter(self.stack[-1], [key, value])

    def _set_items(self) -> None:
        items = self.pop_mark()
        self._enter(self.stack[-1], items)

    def _enter(self, target: Any, items: list[Any]) -> None:
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(target, dict) or type(key) not in (str, int):
                raise BadFileError(f"expected a dict by names, found a {type(target).__name__} by {type(key).__name__}")
            target[key] = value

    # tuples of tuples of the memo are small here, and endless to who hashes or prints them
    dispatch: ClassVar[dict[int, Any]] = {
        **pickle._Unpickler.dispatch,
        pickle.BUILD[0]: _build,
        pickle.SETITEM[0]: _set_item,
        pickle.SETITEMS[0]: _set_items,
    }

    def find_class(self, module: str, name: str) -> Any:
        known: Mapping[tuple[str, str], Callable[..., Any]] = {
            ("collections", "OrderedDict"): lambda: OrderedDict(),
            ("torch._utils", "_rebuild_tensor_v2"): self._tensor,
            ("torch._utils", "_rebuild_parameter"): lambda data, *rest: data,
            ("torch", "Size"): lambda *extents: tuple(*extents),
        }
        if module == "torch" and (name in _STORAGES or name in ("device",)):
            return _Stub(name)
        if (module, name) in known:
            return known[module, name]
        raise BadFileError(f"expected a dict of tensors, found {module}.{name} in it")

    def persistent_load(self, pid: Any) -> _Storage:
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage" or not isinstance(pid[1], _Stub):
            raise BadFileError("expected the storage of a tensor")
        if type(pid[2]) is not str or type(pid[4]) is not int:
            raise BadFileError("expected the name of a storage and its size")
        return _Storage(pid[1].name, pid[2], pid[4])

    def _tensor(self, storage: Any, offset: Any, shape: Any, strides: Any, *rest: Any) -> np.ndarray:
        if not isinstance(storage, _Storage) or not all(type(n) is int and n >= 0 for n in (offset, *shape, *strides)):
            raise BadFileError("expected a tensor's storage, offset, shape and strides")
        array = self._array(storage)
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        if math.prod(shape) and last >= len(array):
            raise BadFileError(f"expected a tensor within {len(array)} elements, got shape {shape} from {offset} on")
        if math.prod(shape) > len(array):
            raise BadFileError(f"expected a tensor of {len(array)} elements at most, got shape {shape}")
        self._left -= math.prod(shape) * max(array.itemsize, 4)
        if self._left < 0:
            raise BadFileError(f"expected tensors of {len(self._arrays)} storages, got many times as many elements")
        steps = [step * array.itemsize for step in strides]
        made = np.lib.stride_tricks.as_strided(array[offset:], shape, steps) if math.prod(shape) else np.zeros(shape)
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
        for instruction, _, _ in pickletools.genops(data):
            if instruction.name not in _INSTRUCTIONS:
                raise BadFileError(
                    f"expected a dict of tensors, found the instruction {instruction.name} in its pickle"
                )
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
