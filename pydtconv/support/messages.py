"""Where messages of progress go: to standard output, or to the log of this package."""

from __future__ import annotations

import errno
import logging
import warnings
import weakref
from typing import Any, Protocol

from pydtconv.naming import printable
from pydtconv.support.disk_errors import DISK_ERRORS

_interactive = [True]


class Line(Protocol):
    """A line of a terminal that is drawn anew, such as a progress bar's."""

    def clear(self) -> None: ...


_lines: weakref.WeakSet[Any] = weakref.WeakSet()
_show_warning = [warnings.showwarning]


def line_drawn(line: Line) -> None:
    """Messages and warnings clear this line first, until it is left, and so have lines of their own."""
    clear_lines()
    _lines.add(line)
    if warnings.showwarning is not _show_above:
        _show_warning[0] = warnings.showwarning
        warnings.showwarning = _show_above


def line_left(line: Line) -> None:
    """The line is not drawn anymore."""
    _lines.discard(line)
    if not _lines and warnings.showwarning is _show_above:
        warnings.showwarning = _show_warning[0]


def clear_lines() -> None:
    """Takes the lines away that are drawn anew."""
    for line in list(_lines):
        line.clear()


def _show_above(*arguments: Any, **more: Any) -> None:
    clear_lines()
    _show_warning[0](*arguments, **more)


def enable_interactive_logging() -> None:
    """Progress is printed, as it is from the start."""
    _interactive[0] = True


def disable_interactive_logging() -> None:
    """Progress goes to the logger "pydtconv" of the module `logging`, line by line."""
    _interactive[0] = False


def is_interactive_logging_enabled() -> bool:
    """Whether progress is printed."""
    return _interactive[0]


def tell(text: str) -> None:
    """A line of progress; control characters in it are shown as escapes.

    What standard output cannot encode is replaced.  Where it goes to a full disk, or nobody reads it, training is not
    to end.
    """
    text = printable(text)
    if not _interactive[0]:
        logging.getLogger("pydtconv").info(text)
        return
    clear_lines()
    try:
        print(text, flush=True)
    except UnicodeEncodeError as error:
        print(text.encode(error.encoding, "replace").decode(error.encoding), flush=True)
    except OSError as error:
        if error.errno not in DISK_ERRORS | {errno.EPIPE}:
            raise
