"""A folder of checkpoints: numbered, the last ones kept, damaged ones passed over."""

from __future__ import annotations

import contextlib
import datetime
import errno
import re
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv._version import __version__
from pydtconv.checkpoints.files import CheckpointError, read_checkpoint, write_checkpoint
from pydtconv.files.whole_file import check_writable, temporary_prefix

_NAME = re.compile(r"checkpoint-(\d{6,})\.npz")
_UNFINISHED = temporary_prefix(Path("checkpoint-*.npz"))


class Checkpoints:
    """The checkpoints in a folder of their own, of which the last `keep` stay.

    They are numbered in the order in which they are written.  A new one is whole before an old one goes.
    """

    def __init__(self, folder: str | Path, keep: int = 1) -> None:
        if not str(folder):
            raise ValueError("checkpoints: expected the name of a folder, got an empty one")
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise ValueError(f"checkpoints: expected keep to be an integer of 1 or more, got {keep!r}")
        self.folder = Path(folder)
        self.keep = keep
        self._refused: set[Path] = set()

    @property
    def paths(self) -> list[Path]:
        """The files, the newest one first."""
        if not self.folder.is_dir():
            return []
        found = [path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
        return sorted(found, key=_number, reverse=True)

    def prepare(self) -> None:
        """Makes the folder and takes away what killed processes left unfinished.

        Raises OSError where that, or writing into it, cannot be done.
        """
        check_writable(self.folder / "checkpoint")
        for path in self.folder.glob(f"{_UNFINISHED}*"):
            path.unlink(missing_ok=True)

    def write(self, state: Mapping[str, Any]) -> Path:
        """Writes one more and takes away those that are too many, the oldest ones.

        Where the disk is full these go before, as far as that makes room; the newest whole one stays in any case until
        the new one is whole.  Raises OSError where there is no room even so.
        """
        newest = self.paths[:1]
        path = self.folder / f"checkpoint-{_number(newest[0]) + 1 if newest else 1:06d}.npz"
        now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        about = {"pydtconv": __version__, "written": now}
        while True:
            try:
                write_checkpoint(path, state, about)
                break
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not self._make_room(_bytes_of(state)):
                    raise
        whole = [other for other in self.paths if other not in self._refused]
        for old in whole[self.keep :]:
            old.unlink(missing_ok=True)
        return path

    def _make_room(self, wanted: int) -> bool:
        """Takes the oldest file away, where it and others that may go leave so many bytes free; says whether."""
        old = [other for other in self.paths if other not in self._refused][1:]
        if not old or shutil.disk_usage(self.folder).free + sum(path.stat().st_size for path in old) < wanted:
            return False
        warnings.warn(f"no room for another checkpoint: {old[-1]} is taken away", UserWarning, stacklevel=4)
        old[-1].unlink(missing_ok=True)
        return True

    def latest(self, check: Callable[[dict[str, Any]], object]) -> tuple[Path, dict[str, Any]] | None:
        """The newest file and its state; where it is damaged, or `check` raises CheckpointError, the one before.

        A warning says of each that is refused why.  Returns None where there are none at all.
        Raises CheckpointError where all are refused.
        """
        reasons = []
        for path in self.paths:
            try:
                state = read_checkpoint(path)
                check(state)
            except CheckpointError as error:
                self._refused.add(path)
                reasons.append(str(error) if str(path) in str(error) else f"{path}: {error}")
            else:
                for reason in reasons:
                    warnings.warn(f"checkpoint refused, the one before is used: {reason}", UserWarning, stacklevel=3)
                return path, state
        if reasons:
            raise CheckpointError("no checkpoint can be used: " + "; ".join(reasons))
        return None

    def delete(self) -> None:
        """Takes all checkpoints away, and the folder where nothing else is in it."""
        for path in self.paths:
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def _number(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    assert match is not None
    return int(match[1])


def _bytes_of(state: Any) -> int:
    """Bytes of all arrays in a state."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    parts = state.values() if isinstance(state, Mapping) else state if isinstance(state, (list, tuple)) else ()
    return sum(map(_bytes_of, parts))
