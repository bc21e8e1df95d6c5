"""Tables of built-in objects by name: initializers, regularizers, losses, ..."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from typing import Any

from pydtconv.serialization.lambdas import reading
from pydtconv.serialization.objects import deserialize_keras_object, made, serialize_keras_object
from pydtconv.serialization.registry import custom_object_scope, get_registered_object


class BuiltIns:
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
        return serialize_keras_object(obj)

    def deserialize(self, config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
        """The reverse of serialize."""
        if isinstance(config, dict) and config.get("class_name") in ("__lambda__", "function"):
            return deserialize_keras_object(config, custom_objects)
        if isinstance(config, dict) and "class_name" in config:
            found = self.lookup(config.get("registered_name") or config["class_name"], custom_objects)
            if not inspect.isclass(found):
                return found
            with custom_object_scope(custom_objects or {}), reading():
                return made(found, config.get("config") or {})
        if isinstance(config, str):
            return self.lookup(config, custom_objects)
        if isinstance(config, dict):
            raise ValueError(f"{self.kind}: expected a name, a config with a class_name or a callable, got {config!r}")
        return self.get(config)
