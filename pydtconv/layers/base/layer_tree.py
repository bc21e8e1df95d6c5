"""What follows from which layers, variables and metrics a layer holds: found once, and again after any of that changes.

A training step of a small network takes less than a walk through its layers.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from pydtconv.graph.ir.variable import trainable_changes

_latest = object()


class _Known:
    """What was found of a layer.  It lies in the layer and goes with it; a copy, or what is read from a pickle, is new.

    since: what was the latest change then.
    """

    def __init__(self, layer: Any = None, since: object = None) -> None:
        self.layer = None if layer is None else weakref.ref(layer)
        self.since = since
        self.found: dict[str, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _Known, ()

    def holds(self, layer: Any) -> bool:
        """Whether it is of this layer, whose attributes a shallow copy has too, and no layer has changed since."""
        return self.since is _latest and self.layer is not None and self.layer() is layer


def changed() -> None:
    """Something has joined a layer or left it, or has been frozen or thawed."""
    global _latest
    _latest = object()


trainable_changes.append(changed)


def known(layer: Any, name: str, find: Callable[[Any], Any]) -> Any:
    """find(layer), from the last time where no layer has changed since; not to be altered.  name: of what is found."""
    latest, entry = _latest, layer.__dict__.get("_pydt_structure_entry")
    if entry is None or not entry.holds(layer):
        entry = layer.__dict__["_pydt_structure_entry"] = _Known(layer, latest)
    found = entry.found
    if name not in found:
        found[name] = find(layer)
    return found[name]
