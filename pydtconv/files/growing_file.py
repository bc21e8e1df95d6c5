"""A file that grows by whole records: what a full disk does not take is kept for the next time."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Any

from pydtconv.files.whole_file import check_target


class GrowingFile:
    """Appends to a file whose first `size` bytes stay, and whose other ones go.  Where path is a link, it is followed.

    size: bytes in the file, all of whole records.  pending: records that are still to be written.
    """

    def __init__(self, path: Path, size: int = 0) -> None:
        self.path, self.size = path, size
        self.pending = b""
        self._file: Any = None

    def add(self, record: bytes) -> None:
        """Writes a record, behind those that could not be written before.

        Raises OSError that names the file; it then ends with the last whole record, or is not there without any.
        """
        if self._file is None:
            check_target(self.path)
        self.pending += record
        try:
            self._open()
            left = memoryview(self.pending)
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._undo()
            reason = os.strerror(error.errno) if error.errno else str(error)
            told = f"{reason}: {len(self.pending)} bytes to be written, kept for the next time"
            raise OSError(error.errno or errno.EIO, told, str(self.path)) from error
        self.size += len(self.pending)
        self.pending = b""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "r+b" if self.size else "wb", buffering=0)  # noqa: SIM115 (stays open)
            self._file.seek(self.size)
            self._file.truncate()

    def _undo(self) -> None:
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            self._file.truncate(self.size)
            if not self.size:
                self.path.unlink()
        with contextlib.suppress(OSError):
            self.close()
        self._file = None
