"""Attributes that are put on classes of pydtconv while a script runs, and taken back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_ABSENT = object()
_undone: list[Callable[[], Any]] = []


def put(owner: Any, name: str, value: Any) -> None:
    """Sets an attribute of a class or module; `take_back` undoes it."""
    old = vars(owner).get(name, _ABSENT)
    undo(lambda: delattr(owner, name) if old is _ABSENT else setattr(owner, name, old))
    setattr(owner, name, value)


def undo(function: Callable[[], Any]) -> None:
    """Has `take_back` call the function."""
    _undone.append(function)


def around(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Puts wrapper(original, self, *args, **kwargs) in the place of a method."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return wrapper(original, self, *args, **kwargs)

    put(owner, name, method)


def take_back() -> None:
    """Puts back what was there, the latest first."""
    while _undone:
        _undone.pop()()
