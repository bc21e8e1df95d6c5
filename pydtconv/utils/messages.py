"""Where messages of progress go: to standard output, or to the log of this package."""

from __future__ import annotations

import logging

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
    """A line of progress."""
    if _interactive[0]:
        print(text, flush=True)
    else:
        logging.getLogger("pydtconv").info(text)
