"""Which graph is being traced: what operators on variables are added to."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

from pydtconv.ops.base import Op


class Tracer(Protocol):
    """What takes operators while it is traced: a graph."""

    def add(self, op: Op, inputs: Sequence[Any]) -> Any: ...


class _Tracing(threading.local):
    """The graphs that this thread is tracing, the innermost one last."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []


_tracing = _Tracing()


def begin(graph: Tracer) -> None:
    """From here on operators of this thread go into this graph."""
    _tracing.graphs.append(graph)


def end() -> None:
    """The innermost graph is traced no longer."""
    _tracing.graphs.pop()


def current() -> Any:
    """The innermost graph that this thread is tracing, or None."""
    graphs = _tracing.graphs
    return graphs[-1] if graphs else None
