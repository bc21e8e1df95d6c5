"""What is true while a layer is being called or built: training or not, and the names of the layers around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_training: list[bool | None] = []
_names: list[str] = []


@contextmanager
def calling(name: str, training: bool | None) -> Iterator[None]:
    """The layer of this name is being called."""
    _training.append(training)
    _names.append(name)
    try:
        yield
    finally:
        _training.pop()
        _names.pop()


@contextmanager
def building(name: str) -> Iterator[None]:
    """The layer of this name is being built."""
    _names.append(name)
    try:
        yield
    finally:
        _names.pop()


def training() -> bool | None:
    """The training mode of the innermost call around, or None outside of calls."""
    return _training[-1] if _training else None


def path_of(name: str) -> list[str]:
    """Names of the layers around, down to the one of this name."""
    return list(_names) if _names and _names[-1] == name else [*_names, name]
