"""Names of objects: tables of built-in ones (initializers, regularizers, ...), and those that users register."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_registered: dict[str, Any] = {}
_names: dict[Any, str] = {}
_scopes: list[dict[str, Any]] = []


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
    """The custom object of this name (with or without its package), or None."""
    for table in (custom_objects or {}, *reversed(_scopes), _registered):
        if name in table:
            return table[name]
    return None


@contextmanager
def custom_object_scope(custom_objects: Mapping[str, Any]) -> Iterator[None]:
    """Inside, custom_objects are found by their names."""
    _scopes.append(dict(custom_objects))
    try:
        yield
    finally:
        _scopes.pop()


class Registry:
    """The built-in objects of one kind by name; `get` is what an argument such as `kernel_initializer=` accepts."""

    def __init__(self, kind: str, objects: Mapping[str, Any]) -> None:
        self.kind = kind
        self.objects = dict(objects)

    def lookup(self, name: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
        """The class or function of this name.  Raises ValueError that lists the near names."""
        if not isinstance(name, str):
            raise ValueError(f"{self.kind}: expected a name, got {name!r}")
        found = get_registered_object(name, custom_objects)
        if found is None:
            found = self.objects.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self.objects, 4) or sorted(self.objects)
            raise ValueError(f"unknown {self.kind} {name!r}: did you mean one of {', '.join(near)}?")
        return found

    def get(self, identifier: Any) -> Any:
        """The object that identifier names: a name, a config, a class, a callable, or None for none."""
        if identifier is None:
            return None
        if isinstance(identifier, dict):
            return self.deserialize(identifier)
        if isinstance(identifier, str):
            identifier = self.lookup(identifier)
        if inspect.isclass(identifier):
            return identifier()
        if callable(identifier):
            return identifier
        raise ValueError(f"{self.kind}: expected a name, a config or a callable, got {identifier!r}")

    def serialize(self, obj: Any) -> Any:
        """obj as plain data: {"class_name": ..., "config": ...} or a function's name."""
        from pydtconv.saving.serialization import serialize_keras_object

        return serialize_keras_object(obj)

    def deserialize(self, config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
        """The reverse of serialize."""
        if isinstance(config, dict) and "class_name" in config:
            found = self.lookup(config.get("registered_name") or config["class_name"], custom_objects)
            if not inspect.isclass(found):
                return found
            inner = config.get("config") or {}
            return found.from_config(inner) if hasattr(found, "from_config") else found(**inner)
        if isinstance(config, str):
            return self.lookup(config, custom_objects)
        if isinstance(config, dict):
            raise ValueError(f"{self.kind}: expected a name, a config with a class_name or a callable, got {config!r}")
        return self.get(config)
