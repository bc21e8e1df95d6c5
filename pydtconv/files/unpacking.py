"""Archives of files from others, unpacked into a folder: no further than it, and no more bytes than there may be."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from pathlib import Path
from typing import IO, Any

from pydtconv.files.reading import BadFileError, open_regular, parsing

#: how compressed files begin, and what reads them
_COMPRESSED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}


def unpack(archive: Path, folder: Path, limit: int | None) -> None:
    """Unpacks a tar or zip archive of files and folders; limit: bytes at most, None where it is known.

    Raises BadFileError for what is none, for more bytes, and for members outside of the folder; some may be there then.
    """
    with parsing(archive, "a tar or zip archive"), open_regular(archive) as file:
        start = file.peek(8)[:8]  # type: ignore[attr-defined]  # buffered
        if start.startswith(b"PK"):
            with zipfile.ZipFile(file) as members:
                _check(sum(info.file_size for info in members.infolist()), limit)
                members.extractall(folder)
            return
        reader = next((reader for magic, reader in _COMPRESSED.items() if start.startswith(magic)), None)
        with _Bounded(reader(file) if reader else file, limit) as data, tarfile.open(fileobj=data, mode="r:") as tar:
            total, root = 0, os.path.realpath(folder)
            for member in tar:
                _check(total := total + member.size, limit)
                place = os.path.normpath(os.path.join(root, member.name))
                if os.path.commonpath([root, place]) != root or not (member.isfile() or member.isdir()):
                    raise BadFileError(f"it holds {member.name!r}, which is no file or folder inside of it")
            # Python 3.11.0 to 3.11.3 has no filters; later ones warn when none is given
            options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            tar.extractall(folder, **options)


def _check(nbytes: int, limit: int | None) -> None:
    if limit is not None and nbytes > limit:
        raise BadFileError(
            f"expected an archive of {limit} bytes at most, it claims {nbytes}: give file_hash to trust it"
        )


class _Bounded(io.RawIOBase):
    """A stream of an archive that refuses to be read beyond a place: headers of tar files may claim any length."""

    def __init__(self, file: IO[bytes], limit: int | None) -> None:
        self._file, self._limit = file, limit

    def read(self, count: int = -1) -> bytes:
        if count > 0:
            _check(self._file.tell() + count - tarfile.RECORDSIZE, self._limit)
        return self._file.read(count)

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        _check(place, self._limit)
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()
