"""Files from others: opened only where they are regular files, with errors of one kind that name the file.

Whatever is wrong inside a file (damage, another format, sizes that do not belong together) is a `BadFileError`.  What
the system says of a file (it is not there, may not be read) stays an OSError as it comes.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
from collections.abc import Iterator
from typing import Any, BinaryIO

from pydtconv.naming import printable

#: bytes that any file may unpack to, and how many times its own size in addition
FREE_BYTES, RATIO = 64 << 20, 16
#: that an array of NumPy may have
_MOST_AXES = 64


class BadFileError(OSError, ValueError):
    """A file that does not hold what it should; the text names it and says what was expected.

    Control characters of the text, which may be the file's, are shown as escapes.
    """

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))


class MissingFileError(FileNotFoundError, ValueError):
    """A file that is not there: Keras raises one or the other, by the kind of file, so that scripts catch either."""


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """The file, open for reading.  Raises BadFileError for pipes, devices, folders; it does not wait for a writer."""
    # O_NONBLOCK: a pipe that nobody writes to is opened at once, and then refused
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise BadFileError(f"{os.fspath(path)}: expected a regular file, got {kind_of(mode)}")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def check_regular(path: str | os.PathLike[str]) -> None:
    """The same check, for files that a library opens by their names."""
    open_regular(path).close()


def read_json(path: str | os.PathLike[str], what: str) -> Any:
    """The contents of a JSON file.  Raises BadFileError for anything else, OSError where it cannot be read."""
    with open_regular(path) as file:
        data = file.read()
    with parsing(path, what):
        return json.loads(data)


@contextlib.contextmanager
def parsing(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Around what parses a file: anything that goes wrong there becomes a BadFileError that names file and `what`.

    Errors of the system with a number pass through, and those of memory, which name the file where they say nothing.
    """
    try:
        yield
    except MemoryError as error:
        if str(error):
            raise
        raise MemoryError(f"{path}: no memory to read {what}") from error
    except BadFileError as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error.__cause__
    except OSError as error:
        if error.errno is not None and error.filename is not None:
            raise
        raise BadFileError(f"{path}: expected {what}; {_said(error)}") from error
    except Exception as error:  # parsers of damaged data raise all kinds
        raise BadFileError(f"{path}: expected {what}; {_said(error)}") from error


def unpacked_limit(packed: int) -> int:
    """Bytes that a compressed file of so many bytes may unpack to; numbers that were learned are far below it."""
    return FREE_BYTES + RATIO * packed


def check_unpacked(size: int, packed: int) -> None:
    """Raises BadFileError where data would unpack to more than `unpacked_limit`."""
    if size > unpacked_limit(packed):
        raise BadFileError(
            f"expected {packed} bytes to unpack to {unpacked_limit(packed)} at most, they claim {size}; "
            "where that is right, store the file without compression"
        )


def elements_of(shape: Any) -> int:
    """The number of elements of an array of this shape.

    Raises BadFileError where it is no list or tuple of whole numbers from 0 on, or longer than NumPy's may be: the
    product of a million numbers takes minutes.
    """
    plain = isinstance(shape, (list, tuple)) and all(type(extent) is int for extent in shape)
    if not plain or len(shape) > _MOST_AXES or min(shape, default=0) < 0:
        got = str(shape[:_MOST_AXES])[:200] if plain else f"a {type(shape).__name__}"  # others may have no end
        raise BadFileError(f"expected up to {_MOST_AXES} extents of 0 or more, got {got}")
    return math.prod(shape)


def _said(error: BaseException) -> str:
    text = str(error) or "no more is known"
    text = f"no entry {text}" if isinstance(error, KeyError) else text
    return f"{type(error).__name__}: {text[:500]}"


def kind_of(mode: int) -> str:
    """What a path leads to that is no regular file, by the mode that `os.stat` gives."""
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFDIR: "a folder", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
