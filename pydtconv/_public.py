"""The public modules by name, for the code that finds the classes which a file names.

A file may name a class of any room, and the code that reads it stands below most of them.  So the package's root, which
knows all rooms, gives its own lookup to this module when it is imported.
"""

from __future__ import annotations

import importlib
import sys
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


def refusal(of: str) -> Callable[[str], Any]:
    """`utils.suggest.refusal` for a module that stands below `utils`, which is imported when a name is missing."""

    def __getattr__(name: str) -> Any:
        if name.startswith("_") or _lookup is None:
            raise AttributeError(f"module {of!r} has no attribute {name!r}")
        importlib.import_module("pydtconv.utils.suggest").refusal(of, own_names(refused))(name)

    refused = sys.modules[of]
    __getattr__.refuses = True  # type: ignore[attr-defined]
    refused.__path__ = []  # as a package has, so that Python asks its finders for a missing name
    return __getattr__


def own_names(module: Any) -> list[str]:
    """The public names of a module that are not from elsewhere."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("pydtconv")
    ]
