"""What is true while a layer is called or built, in each thread: training or not, the names of the layers around."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydtconv.extents import SizeError
from pydtconv.graph.ir import tracing

#: a function that gives what knows the losses of a layer's last call from outside of layers: the graph that recorded
#: it, while there is one, or the AddedLosses of a call on arrays
recordings: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


class _Context(threading.local):
    """The calls and builds of this thread, the innermost one last."""

    def __init__(self) -> None:
        self.training: list[bool | None] = []
        self.names: list[str] = []
        self.called: list[Any] = []
        self.built: list[Any] = []
        self.again: list[Any] = []  # those of `built` that had been built before


_context = _Context()


@contextmanager
def calling(layer: Any, training: bool | None) -> Iterator[None]:
    """The layer is being called."""
    _context.training.append(training)
    _context.names.append(layer.name)
    _context.called.append(layer)
    try:
        yield
    finally:
        _context.training.pop()
        _context.names.pop()
        _context.called.pop()


def is_calling(layer: Any = None) -> bool:
    """Whether the layer, or any, is being called."""
    return bool(_context.called) if layer is None else any(each is layer for each in _context.called)


@contextmanager
def naming_errors(layer: Any) -> Iterator[None]:
    """A ValueError from inside begins with the name of the layer, of the innermost one, unless it tells it already."""
    try:
        yield
    except ValueError as error:
        if type(error) in (ValueError, SizeError) and not hasattr(error, "_of_layer"):
            error._of_layer = layer.name  # type: ignore[attr-defined]
            text = str(error)
            if len(error.args) == 1 and repr(layer.name) not in text:
                error.args = (f"{type(layer).__name__} {layer.name!r}: {text}",)
        raise


@contextmanager
def building(layer: Any) -> Iterator[None]:
    """The layer is being built."""
    if is_building(layer):  # its base's `build`
        yield
        return
    if layer.built:
        _context.again.append(layer)
    _context.names.append(layer.name)
    _context.built.append(layer)
    try:
        with tracing.building(), naming_errors(layer):
            yield
    finally:
        _context.names.pop()
        _context.built.pop()
        if not is_building(layer):
            _context.again[:] = [each for each in _context.again if each is not layer]


def builds_again(layer: Any) -> bool:
    """Whether the layer is being built, and had been before."""
    return any(each is layer for each in _context.again)


def is_building(layer: Any) -> bool:
    """Whether the layer is being built."""
    return any(each is layer for each in _context.built)


def training() -> bool | None:
    """The training mode of the innermost call around; None outside of calls, and where nobody has said any."""
    stack = _context.training
    return stack[-1] if stack else None


def path_of(name: str) -> list[str]:
    """Names of the layers around, down to the one of this name."""
    names = _context.names
    return list(names) if names and names[-1] == name else [*names, name]
