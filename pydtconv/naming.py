"""Names that layers, models and other objects get by themselves (`conv2d`, `conv2d_1`, ...), and those of devices."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from pydtconv.suggest import naming_arguments

#: characters that a terminal follows instead of showing them, or that turn the order of those around them
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

_uids: dict[str, int] = {}
_lock = threading.Lock()


def to_snake_case(name: str) -> str:
    """ "BatchNormalization" -> "batch_normalization", "Conv2D" -> "conv2d"."""
    name = re.sub(r"\W+", "", name)
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def auto_name(prefix: str) -> str:
    """The next free name of a class or function of this name in the process."""
    prefix = to_snake_case(prefix)
    with _lock:
        count = _uids.get(prefix, 0)
        _uids[prefix] = count + 1
    return f"{prefix}_{count}" if count else prefix


def get_uid(prefix: str = "") -> int:
    """Counts how often prefix was asked for, from 1."""
    with _lock:
        count = _uids[prefix] = _uids.get(prefix, 0) + 1
    return count


def reset_uids() -> None:
    """Lets all names begin anew."""
    _uids.clear()


def checked_name(name: str) -> str:
    """A name as it is.  Raises ValueError for control characters, which would do something where it is shown."""
    if isinstance(name, str) and _CONTROL.search(name):
        raise ValueError(f"name: expected a text without control characters, got {name!r}")
    return name


def printable(text: str) -> str:
    """A text with escapes in the place of its control characters; lines and tabs stay."""
    return _CONTROL.sub(lambda found: found[0] if found[0] in "\n\t" else ascii(found[0])[1:-1], text)


def device_name(name: str) -> str:
    """A device by its whole name: "cpu", "gpu:0", "host".  Raises ValueError for what names none."""
    kind, colon, number = str(name).lower().partition(":")
    if kind == "gpu" and (not colon or number.isdecimal()):
        return f"gpu:{int(number or 0)}"
    if kind in ("cpu", "host") and number in ("", "0"):
        return kind
    raise ValueError(f"device: expected 'cpu', 'gpu', 'gpu:<number>' or 'host', got {name!r}")


def defined_in(namespace: Mapping[str, Any]) -> list[str]:
    """The public functions and classes that a file defines; namespace: its `globals()`."""
    own = (name for name, thing in namespace.items() if getattr(thing, "__module__", None) == namespace["__name__"])
    return [name for name in own if not name.startswith("_")]


def with_default_name(constructor: Any, name: str) -> Any:
    """A constructor with this default of its argument `name`, so that signatures show it."""
    constructor = inspect.unwrap(constructor)
    code, defaults = constructor.__code__, constructor.__defaults__
    parameters = code.co_varnames[: code.co_argcount][-len(defaults) :]
    given = tuple(name if p == "name" else default for p, default in zip(parameters, defaults, strict=True))
    copy = FunctionType(code, constructor.__globals__, "__init__", given, constructor.__closure__)
    copy.__annotations__, copy.__qualname__ = constructor.__annotations__, constructor.__qualname__
    return naming_arguments(copy)
