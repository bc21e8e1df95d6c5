"""Warnings of old names: one for each name in a process, at the line of the script that uses it."""

from __future__ import annotations

import contextlib
import sys
import warnings
from pathlib import Path

#: code between a script and a warning: the package's, and what runs its context managers
_BETWEEN = (str(Path(__file__).parents[2]), contextlib.__file__)
_seen: set[str] = set()


def once(name: str, text: str) -> None:
    """Warns the first time that the name comes."""
    if name in _seen:
        return
    _seen.add(name)
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, FutureWarning, stacklevel=level)


def any_yet() -> bool:
    """Whether the script has used an old name."""
    return bool(_seen)


def forget() -> None:
    """Lets all names warn again."""
    _seen.clear()
