"""Objects by name: strings, configs and classes, with an error that lists the near names."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any


def near(name: str, choices: Iterable[str], count: int = 3) -> str:
    """' Did you mean ...?' with the nearest choices, or an empty string where nothing is near."""
    lowered = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(str(name).lower(), lowered, n=count, cutoff=0.5)
    return f" Did you mean {' or '.join(repr(lowered[key]) for key in found)}?" if found else ""


def lookup(kind: str, identifier: Any, table: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """What an identifier stands for.

    identifier: a name, a config `{"class_name": ..., "config": {...}}`, a class or an object.  Classes are instantiated
    without arguments; everything else that can be called is returned as it is.
    Raises ValueError for an unknown name, with the near ones, and TypeError for anything else.
    """
    custom = custom_objects or {}
    if isinstance(identifier, Mapping):
        if "class_name" not in identifier:
            raise ValueError(f"{kind}: expected a config with 'class_name' and 'config', got {dict(identifier)!r}")
        found = lookup_name(kind, identifier["class_name"], table, custom)
        if not inspect.isclass(found):
            return found
        return found.from_config(dict(identifier.get("config") or {}))
    if isinstance(identifier, str):
        identifier = lookup_name(kind, identifier, table, custom)
    if inspect.isclass(identifier):
        return identifier()
    if callable(identifier):
        return identifier
    raise TypeError(f"{kind}: expected a name, a config or an object, got {identifier!r} ({type(identifier).__name__})")


def lookup_name(kind: str, name: str, table: Mapping[str, Any], custom: Mapping[str, Any] | None = None) -> Any:
    """The entry of a name, whichever way it is written in capitals.  Raises ValueError with the near names."""
    for source in (custom or {}, table):
        if name in source:
            return source[name]
        for key, value in source.items():
            if key.lower() == str(name).lower():
                return value
    raise ValueError(f"unknown {kind} {name!r}.{near(name, [*(custom or {}), *table])}")

