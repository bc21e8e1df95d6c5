"""The public modules by name, for the code that finds the classes which a file names.

A file may name a class of any room, and the code that reads it stands below most of them.  So the package's root, which
knows all rooms, gives its own lookup to this module when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_lookup: Callable[[str], Any] | None = None


def set_lookup(lookup: Callable[[str], Any]) -> None:
    """lookup: gives the public module of a name, such as "layers", and imports it where that has not been done."""
    global _lookup
    _lookup = lookup


def module(name: str) -> Any:
    """The public module of a name."""
    assert _lookup is not None
    return _lookup(name)
