"""HDF5 files from others: what is read must lie in the file itself, be numbers, and have a size that was expected.

Links to other files and to other places, data kept in other files (external and virtual storage), and filters that
HDF5 would load as plug-ins are refused.  Shape and type are looked at before any data is read.
"""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np

from pydtconv.utils.reading import FREE_BYTES, BadFileError

#: deflate, shuffle, checksum, szip and LZF, which are built in
_FILTERS = {
    h5py.h5z.FILTER_DEFLATE,
    h5py.h5z.FILTER_SHUFFLE,
    h5py.h5z.FILTER_FLETCHER32,
    h5py.h5z.FILTER_SZIP,
    h5py.h5z.FILTER_LZF,
}


def group_at(file: h5py.File, path: str) -> h5py.Group | None:
    """The group at a path of names, each of which lies in the file itself; None where there is none."""
    group: Any = file
    for name in path.split("/"):
        if not isinstance(group, h5py.Group):
            raise BadFileError(f"{path}: expected a group, found a {type(group).__name__.lower()} above it")
        group = _own(group, name)
        if group is None:
            return None
    if not isinstance(group, h5py.Group):
        raise BadFileError(f"{path}: expected a group, found a {type(group).__name__.lower()}")
    return group


def datasets_in(group: h5py.Group | None, count: int) -> list[h5py.Dataset] | None:
    """The data sets "0", "1", ... of a group that holds `count` of them and nothing else; None where it does not."""
    if group is None:
        return [] if not count else None
    if len(group) != count or not all(group.id.links.exists(str(index).encode()) for index in range(count)):
        return None
    return [_dataset(group, str(index)) for index in range(count)]


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
    links, key = group.id.links, name.encode()
    if not links.exists(key):
        return None
    if links.get_info(key).type != h5py.h5l.TYPE_HARD:
        to = ":".join(part.decode(errors="replace") for part in links.get_val(key) if isinstance(part, bytes))
        raise BadFileError(f"{group.name}/{name}: expected data in this file, found a link{to and f' to {to}'}")
    return group[name]


def _dataset(group: h5py.Group, name: str) -> h5py.Dataset:
    """A member that is a data set of numbers, kept in this file.  Raises BadFileError for anything else."""
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
