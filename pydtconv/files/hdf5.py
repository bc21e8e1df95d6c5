"""HDF5 files from others: what is read must lie in the file itself, be numbers, and have a size that was expected.

Links to other files and to other places, data kept in other files (external and virtual storage), and filters that
HDF5 would load as plug-ins are refused.  Shape and type are looked at before any data is read.

h5py takes as much memory as NumPy: it is imported when a file is opened.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from pydtconv.files.hdf5_trial import BUILT_IN, problem_of
from pydtconv.files.reading import FREE_BYTES, BadFileError, unpacked_limit
from pydtconv.support.uninterrupted import uninterrupted

if TYPE_CHECKING:
    import h5py

#: bytes of an attribute: configs of the largest networks have a few MB
_ATTRIBUTE_BYTES = 1 << 26
#: characters of the path of a group
_PATH = 4096
#: bytes of a text besides its characters
_TEXT = 64
#: bytes that may still be read of the file that is open, besides weights of shapes that are known
_left: ContextVar[list[int]] = ContextVar("_left")
#: bytes that are given back when memory has run out, for HDF5 to close its file with
_RESERVE = 1 << 20
#: what HDF5 says of memory
_NO_MEMORY = "memory allocation failed"
#: deflate, shuffle, checksum, szip and LZF, which are built in
_FILTERS = set(BUILT_IN)


@atexit.register
def _let_go_of_converters() -> None:
    """What h5py does at exit: where it is imported then, by a first save, it is too late to register that."""
    h5py = sys.modules.get("h5py")
    if h5py is not None:
        h5py._unregister_converters()


@contextmanager
def opened(file: Any, what: str) -> Iterator[h5py.File]:
    """A file that should be `what`, by its path or as an object in memory, after a trial (see hdf5_trial.py)."""
    import h5py

    size = len(file.getbuffer()) if hasattr(file, "getbuffer") else os.stat(file).st_size
    problem = problem_of(file, size)
    if problem:
        raise BadFileError(f"expected {what}; {problem}")
    token = _left.set([unpacked_limit(size)])
    try:
        with h5py.File(file, "r") as h5:
            yield h5
    finally:
        _left.reset(token)


def _spend(nbytes: int, where: str) -> None:
    """Counts what is read without being expected.  Raises BadFileError where that is too much for the file's size."""
    left = _left.get()
    left[0] -= nbytes
    if left[0] < 0:
        raise BadFileError(f"{where}: expected less data, found {nbytes} bytes that are {-left[0]} more than allowed")


@contextmanager
def writing(file: Any, nbytes: int) -> Iterator[h5py.File]:
    """A new file in a file object, to be filled with arrays of so many bytes in all.

    Raises what the file object raised first, and MemoryError where there is no memory.  Ctrl-C waits until the file is
    closed: HDF5 would make another error of it, or crash.
    """
    import h5py

    told = f"no memory to write weights of {nbytes / (1 << 20):.1f} MiB"
    try:
        output = _Output(file)
    except MemoryError as error:
        raise MemoryError(told) from error
    with uninterrupted():
        try:
            with h5py.File(output, "w") as h5:
                yield h5
        except Exception as error:
            if not (output.error or isinstance(error, MemoryError) or _NO_MEMORY in str(error)):
                raise
            output.failed(error)
    if (isinstance(output.error, OSError) and output.error.errno) or not isinstance(output.error, Exception | None):
        raise output.error
    if output.error is not None:
        raise MemoryError(told) from output.error


class _Output:
    """A file object that HDF5 can always write to and close: one that it could not close it would use when it is gone.

    error: the first one of the file itself; what comes after it is dropped.
    """

    def __init__(self, file: Any) -> None:
        self._file, self._at, self._end = file, 0, 0
        self.error: BaseException | None = None
        self._reserve: bytearray | None = bytearray(_RESERVE)

    def failed(self, error: BaseException) -> None:
        self.error = self.error or error
        self._reserve = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._end}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        count = len(data)
        self._try(lambda: (self._file.seek(self._at), self._file.write(data)))
        self._at += count
        self._end = max(self._end, self._at)
        return count

    def read(self, count: int = -1) -> bytes:
        data = bytearray(self._end - self._at if count < 0 else count)
        self.readinto(data)
        return bytes(data)

    def readinto(self, data: Any) -> int:
        self._try(lambda: (self._file.seek(self._at), self._file.readinto(data)))
        self._at += len(data)
        return len(data)

    def truncate(self, size: int) -> int:
        self._end = size
        self._try(lambda: self._file.truncate(size))
        return size

    def flush(self) -> None:
        self._try(self._file.flush)

    def _try(self, call: Callable[[], object]) -> None:
        if self.error is None:
            try:
                call()
            except BaseException as error:  # an exit, too, of which HDF5 would make something else
                self.failed(error)


def is_group(member: object) -> TypeGuard[h5py.Group]:
    """Whether something in a file is a group (or the file itself)."""
    import h5py

    return isinstance(member, h5py.Group)


def group_at(file: h5py.File, path: str) -> h5py.Group | None:
    """The group at a path of names, each of which lies in the file itself; None where there is none."""
    group: Any = file
    for name in path.split("/"):
        if not is_group(group):
            raise BadFileError(f"{path}: expected a group, found a {type(group).__name__.lower()} above it")
        group = _own(group, name)
        if group is None:
            return None
    if not is_group(group):
        raise BadFileError(f"{path}: expected a group, found a {type(group).__name__.lower()}")
    return group


def datasets_in(group: h5py.Group | None, count: int) -> list[h5py.Dataset] | None:
    """The data sets "0", "1", ... of a group that holds `count` of them and nothing else; None where it does not."""
    if group is None:
        return [] if not count else None
    if len(group) != count or not all(group.id.links.exists(str(index).encode()) for index in range(count)):
        return None
    return [_dataset(group, str(index)) for index in range(count)]


def members_of(group: h5py.Group) -> Iterator[tuple[str, h5py.Group | h5py.Dataset]]:
    """(name, group or data set) of all that lies in a group of this file, with the checks of data sets."""
    for name in group:
        member = _own(group, name)
        yield name, member if is_group(member) else _dataset(group, name)


def dataset_at(group: h5py.Group | None, path: str) -> h5py.Dataset:
    """The data set at a path of names below a group.  Raises BadFileError where there is none, or it is elsewhere."""
    *groups, name = path.split("/")
    inner = group if not groups or group is None else group_at(group, "/".join(groups))
    if inner is None or not inner.id.links.exists(name.encode()):
        raise BadFileError(f"expected a data set {path!r}, found none")
    return _dataset(inner, name)


def groups_in(h5: h5py.File) -> Iterator[tuple[str, h5py.Group]]:
    """(path, group) of a file itself, whose path is empty, and of all groups in it: each once, those outside first."""
    from h5py import h5o

    waiting, seen = [("", h5["/"])], set()
    while waiting:
        path, group = waiting.pop()
        place = h5o.get_info(group.id)
        if (place.fileno, place.addr) in seen:
            continue
        if len(path) > _PATH:
            raise BadFileError(f"{path[:40]}...: expected paths of {_PATH} characters at most, found {len(path)}")
        seen.add((place.fileno, place.addr))
        yield path, group
        members = [(name, _own(group, name)) for name in group]
        waiting += [(f"{path}/{name}".lstrip("/"), member) for name, member in reversed(members) if is_group(member)]


def arrays_in(group: h5py.Group) -> dict[str, np.ndarray]:
    """The arrays in a group by name, of shapes that only the file knows."""
    found = {name: member for name, member in members_of(group) if not is_group(member)}
    _spend(sum(dataset.nbytes for dataset in found.values()), str(group.name))
    return {name: array_of(dataset) for name, dataset in found.items()}


def attribute_of(group: h5py.Group, name: str) -> Any:
    """An attribute that is a text or a list of texts, None where there is none; its size is looked at first."""
    if name not in group.attrs:
        return None
    attribute = group.attrs.get_id(name)
    count = int(np.prod(attribute.shape, dtype=np.float64))
    if attribute.dtype.kind not in "SO" and count:
        raise BadFileError(f"{group.name}: {name}: expected texts, found {attribute.dtype}")
    if count * max(attribute.dtype.itemsize, 1) > _ATTRIBUTE_BYTES:
        raise BadFileError(f"{group.name}: {name}: expected {_ATTRIBUTE_BYTES} bytes at most, found {count} texts")
    value = group.attrs[name]
    _spend(sum(len(text) + _TEXT for text in np.ravel(value)), f"{group.name}: {name}")
    return value


def array_of(dataset: h5py.Dataset) -> np.ndarray:
    """The data of a data set of `datasets_in` whose shape is one that was expected."""
    chunks = dataset.chunks
    if chunks is not None:
        size = int(np.prod(chunks, dtype=np.float64)) * dataset.dtype.itemsize
        if size > max(dataset.nbytes, FREE_BYTES):
            raise BadFileError(f"{dataset.name}: expected chunks of {dataset.nbytes} bytes at most, got {size}")
    array: np.ndarray = dataset[()] if dataset.shape else np.asarray(dataset[()])
    return array


def _own(group: h5py.Group, name: str) -> Any:
    """A member by its name alone, which does not follow links; None where there is none."""
    from h5py import h5l

    links, key = group.id.links, name.encode()
    if not links.exists(key):
        return None
    if links.get_info(key).type != h5l.TYPE_HARD:
        to = ":".join(part.decode(errors="replace") for part in links.get_val(key) if isinstance(part, bytes))
        raise BadFileError(f"{group.name}/{name}: expected data in this file, found a link{to and f' to {to}'}")
    return group[name]


def _dataset(group: h5py.Group, name: str) -> h5py.Dataset:
    """A member that is a data set of numbers, kept in this file.  Raises BadFileError for anything else."""
    import h5py

    dataset, where = _own(group, name), f"{group.name}/{name}"
    if not isinstance(dataset, h5py.Dataset):
        raise BadFileError(f"{where}: expected a data set, found a {type(dataset).__name__.lower()}")
    if dataset.is_virtual or dataset.external:
        raise BadFileError(f"{where}: expected data in this file, found it kept in another one")
    if dataset.dtype.kind not in "biuf" or dataset.shape is None:
        raise BadFileError(f"{where}: expected real numbers, found {dataset.dtype}")
    plist = dataset.id.get_create_plist()
    unknown = {plist.get_filter(i)[0] for i in range(plist.get_nfilters())} - _FILTERS
    if unknown:
        raise BadFileError(f"{where}: expected data that is stored plainly or deflated, found the filters {unknown}")
    return dataset
