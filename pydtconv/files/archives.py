"""Zip files from others, and the arrays in them: sizes are looked at before anything is unpacked.

No more is unpacked than a member's entry says, and no more in all than `reading.unpacked_limit` of the file's size.
Arrays are of numbers; pickles are refused.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from typing import Any, BinaryIO

import numpy as np

from pydtconv.files.reading import BadFileError, check_unpacked, open_regular, parsing

_BLOCK = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: kinds of numbers that arrays may be of: booleans, integers with and without sign, floats, complex ones
KINDS = "biufc"


class Archive:
    """A zip file that is open for reading; what: the kind of file, for errors.

    path: its name, or a stream that holds it, which stays open.  nbytes: of the file.
    """

    def __init__(self, path: str | os.PathLike[str] | BinaryIO, what: str) -> None:
        self.what, self._own = what, isinstance(path, (str, os.PathLike))
        self.path = os.fspath(path) if isinstance(path, (str, os.PathLike)) else "the stream"
        self._file = open_regular(path) if isinstance(path, (str, os.PathLike)) else path
        try:
            with parsing(self.path, what):
                self.nbytes = self._file.seek(0, os.SEEK_END)
                self._zip = zipfile.ZipFile(self._file)
                check_unpacked(sum(info.file_size for info in self._zip.infolist()), self.nbytes)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: Any) -> None:
        self._zip.close()
        self._close()

    def _close(self) -> None:
        if self._own:
            self._file.close()

    @property
    def names(self) -> list[str]:
        return self._zip.namelist()

    def size(self, name: str) -> int:
        """Bytes that a member unpacks to."""
        with self.open(name) as member:
            return member.left

    def open(self, name: str) -> Member:
        """A member, to be read within `reading.parsing`."""
        try:
            info = self._zip.getinfo(name)
        except KeyError:
            raise BadFileError(f"{self.path}: expected {self.what}, found no {name} in it") from None
        if info.compress_type not in _METHODS:
            raise BadFileError(f"{self.path}: {name}: expected it stored or deflated, got method {info.compress_type}")
        with parsing(self.path, self.what):
            return Member(self._zip.open(info), info.file_size)

    def read(self, name: str, limit: int) -> bytes:
        """All of a member of at most `limit` bytes."""
        with self.open(name) as member, parsing(self.path, self.what):
            if member.left > limit:
                raise BadFileError(f"{self.path}: {name}: expected {limit} bytes at most, got {member.left}")
            return member.read()

    def array(self, name: str) -> np.ndarray:
        """The array of a member `name`.npy."""
        with self.open(f"{name}.npy") as member, parsing(f"{self.path}: {name}", "an array of numbers"):
            return read_npy(member)


class Member(io.RawIOBase):
    """The data of a member, taken out in blocks and never more than its entry says.

    left: bytes that are still to come.  Its checksum is compared when the last ones are read.
    """

    def __init__(self, file: Any, size: int) -> None:
        self._file, self.left = file, size

    def read(self, count: int | None = -1) -> bytes:
        wanted = self.left if count is None or count < 0 else min(count, self.left)
        blocks = []
        while wanted:
            block = self._file.read(min(wanted, _BLOCK))
            if not block:
                raise BadFileError(f"it ends {self.left} bytes too early")
            blocks.append(block)
            wanted -= len(block)
            self.left -= len(block)
        return blocks[0] if len(blocks) == 1 else b"".join(blocks)

    def close(self) -> None:
        self._file.close()
        super().close()


def read_npy(member: Member) -> np.ndarray:
    """The array of a `.npy` of numbers that is all of a member.  Raises BadFileError or what parsing raises."""
    version = np.lib.format.read_magic(member)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise BadFileError(f"expected version 1.0 or 2.0 of the .npy format, got {version}")
    shape, fortran, dtype = readers[version](member)
    if dtype.kind not in KINDS or dtype.names or dtype.subdtype:
        raise BadFileError(f"expected an array of numbers, got dtype {dtype}")
    if any(extent < 0 for extent in shape) or math.prod(shape) * dtype.itemsize != member.left:
        raise BadFileError(f"expected {dtype} {shape}, got {member.left} bytes of data")
    array: np.ndarray = np.empty(shape[::-1] if fortran else shape, dtype)
    raw = array.reshape(-1).view(np.uint8).data
    while member.left:
        start = len(raw) - member.left
        block = member.read(_BLOCK)
        raw[start : start + len(block)] = block
    member.read()
    return array.T if fortran else array
