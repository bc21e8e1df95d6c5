"""Where messages of progress go: to standard output, or to the log of this package."""

from __future__ import annotations

import errno
import logging

from pydtconv.naming import printable
from pydtconv.support.disk_errors import DISK_ERRORS

_interactive = [True]


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
    try:
        print(text, flush=True)
    except UnicodeEncodeError as error:
        print(text.encode(error.encoding, "replace").decode(error.encoding), flush=True)
    except OSError as error:
        if error.errno not in DISK_ERRORS | {errno.EPIPE}:
            raise
