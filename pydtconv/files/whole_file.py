"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from pydtconv import replica
from pydtconv.files.reading import kind_of
from pydtconv.support.machine import home
from pydtconv.support.uninterrupted import uninterrupted

#: bytes of a file's name that the names of its unfinished ones begin with, for those to be no longer than allowed
_NAME_BYTES = 200


def write_whole(path: Path, write: Callable[[IO[bytes]], object], size: int | None = None) -> None:
    """Writes a file so that path holds either what it held or all that `write` wrote.

    The file grows under another name in the same folder, is forced to the disk, renamed, and the folder is forced to
    the disk too.  A link at path is replaced, and what it leads to stays.
    size: bytes that are expected, for the error.
    Where several processes train one model, the first one writes (`write_alone` does so in each).
    Raises OSError, with the errno of the cause, that names the file and its size; nothing of it is left then.
    """
    here = replica.current()
    if not here.writes(path):
        return
    try:
        write_alone(path, write, size)
    finally:
        here.done(path)


def write_alone(
    path: Path, write: Callable[[IO[bytes]], object], size: int | None = None, lasting: bool = True
) -> None:
    """The same, whatever other processes do.

    lasting: False for what can be made again: it is not forced to the disk, and a crash of the system may damage it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    check_target(path)
    temporary, file = "", None
    try:
        with uninterrupted(), _named(path):
            name = str(path.parent / f"{temporary_prefix(path)}{secrets.token_hex(8)}")
            file = open(name, "x+b")  # noqa: SIM115  # the system applies the umask; to read it would change it
            temporary = name
        write(file)
        file.flush()
        if lasting:
            os.fsync(file.fileno())
        file.close()
        os.replace(temporary, path)
    except OSError as error:
        if not temporary:
            raise
        raise _told(error, path, temporary, size) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        with contextlib.suppress(OSError):
            if file is not None:
                file.close()
    if lasting:
        _sync_folder(path.parent)


def check_target(path: Path) -> None:
    """Raises OSError where a path is too long, or leads to a folder, a pipe or a device, which a file would replace."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise
        return  # nothing is there, or it may not be looked at: writing says so
    if not stat.S_ISREG(mode):
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, f"expected the name of a file, got {kind_of(mode)}", str(path))


def check_writable(path: Path, size: int = 0) -> None:
    """Raises OSError, naming the file, where one of so many bytes cannot be written now; leaves what is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    check_target(path)
    with _named(path), tempfile.TemporaryFile(prefix=temporary_prefix(path), dir=path.parent) as file:
        file.write(bytes(min(size, 4096)))
        file.flush()
    free = shutil.disk_usage(path.parent).free
    if size > free:
        text = f"{os.strerror(errno.ENOSPC)}: {_mib(size)} to be written, {_mib(free)} free"
        raise OSError(errno.ENOSPC, text, str(path))


def write_elsewhere(path: Path, suffix: str, write: Callable[[IO[bytes]], object], size: int | None = None) -> Path:
    """Writes what could not be written to path into another folder: this one, the user's or that of temporary files.

    Returns where it is.  Raises OSError where none of them takes it.
    """
    stem = path.name.removesuffix(suffix)[:50]
    errors: list[OSError] = []
    for folder in (Path.cwd, home, tempfile.gettempdir):
        try:
            other = Path(folder()) / f"{stem}-{os.getpid()}{suffix}"
            write_alone(other, write, size)
        except OSError as error:
            errors.append(error)
        else:
            return other
    raise errors[-1]


@contextlib.contextmanager
def before_training(who: str) -> Iterator[None]:
    """Within it, who writes while a model is trained tries whether it can: an OSError names it, and says when it is."""
    try:
        yield
    except OSError as error:
        text = f"{who}: cannot write: {error.strerror}; training has not begun"
        raise OSError(error.errno, text, error.filename) from error


@contextlib.contextmanager
def training_goes_on(who: str) -> Iterator[None]:
    """Turns an OSError into a warning: hours of training are worth more than one file.

    What could not be written at all was found before training began.
    """
    try:
        yield
    except OSError as error:
        warnings.warn(f"{who}: NOT WRITTEN, training goes on: {error}", UserWarning, stacklevel=3)


def temporary_prefix(path: Path) -> str:
    """What the names of unfinished files for path start with; a killed process may leave one behind."""
    return f".{os.fsencode(path.name)[:_NAME_BYTES].decode(errors='ignore')}.part-"


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Within it an OSError tells of this file, not of the one beside it that is written first."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or errno.EIO), str(path)) from error


def _told(error: OSError, path: Path, temporary: str, size: int | None) -> OSError:
    written = os.path.getsize(temporary)
    needs = f"{_mib(size)} to be written" if size is not None else "its size is not known"
    free = shutil.disk_usage(path.parent).free
    reason = os.strerror(error.errno) if error.errno else str(error)
    text = f"{reason}: {needs}, stopped after {_mib(written)}, {_mib(free)} free; what was there before is untouched"
    return OSError(error.errno or errno.EIO, text, str(path))


def _mib(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems without such a thing
            raise
    finally:
        os.close(descriptor)
