"""Names of the classes and functions that users register, so that they are found when a file names them."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

#: functions that configs have by their name alone
NAMED: set[Any] = set()
_registered: dict[str, Any] = {}
_names: dict[Any, str] = {}


class _Scopes(threading.local):
    """The custom objects of the scopes that this thread is in, the innermost one last."""

    def __init__(self) -> None:
        self.tables: list[dict[str, Any]] = []


_scopes = _Scopes()


def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Callable[[T], T]:
    """A decorator that makes a class or function loadable from a saved model under "package>name"."""

    def register(target: T) -> T:
        registered = f"{package}>{name or target.__name__}"  # type: ignore[attr-defined]
        if inspect.isclass(target) and not hasattr(target, "get_config"):
            raise ValueError(f"register_keras_serializable: {target.__name__} needs a get_config() method")
        _registered[registered] = target
        _names[target] = registered
        return target

    return register


def get_registered_name(obj: Any) -> str:
    """The name under which obj was registered, else its own."""
    return _names.get(obj, getattr(obj, "__name__", type(obj).__name__))


def get_custom_objects() -> dict[str, Any]:
    """The process's table of custom objects by name; may be changed."""
    return _registered


def get_registered_object(name: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The custom object of this name, which has its package where it was registered with one, or None."""
    for table in (custom_objects or {}, *reversed(_scopes.tables), _registered):
        if name in table:
            return table[name]
    return None


def of_a_package(name: str) -> Any:
    """A custom object of this name that was registered with whatever package, or None."""
    return next((each for known, each in objects_in_scope().items() if known.endswith(f">{name}")), None)


def objects_in_scope() -> dict[str, Any]:
    """All custom objects that are known here, by name."""
    known: dict[str, Any] = {}
    for table in (_registered, *_scopes.tables):
        known.update(table)
    return known


@contextmanager
def custom_object_scope(custom_objects: Mapping[str, Any] | None) -> Iterator[None]:
    """Inside, custom_objects are found by their names."""
    _scopes.tables.append(dict(custom_objects or {}))
    try:
        yield
    finally:
        _scopes.tables.pop()
