"""Which graph is being traced: what operators on variables are added to."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from pydtconv.ops.base import Op


class Tracer(Protocol):
    """What takes operators while it is traced: a graph."""

    def add(self, op: Op, inputs: Sequence[Any]) -> Any: ...


class _Tracing(threading.local):
    """The graphs that this thread is tracing, the innermost one last."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.waiting: list[Any] = []
        self.settling = False
        self.building = 0


_tracing = _Tracing()

#: recordings that may wait; the oldest one runs where there are more
_WAITING = 8


def begin(graph: Tracer) -> None:
    """From here on operators of this thread go into this graph."""
    _tracing.graphs.append(graph)


def end() -> None:
    """The innermost graph is traced no longer."""
    _tracing.graphs.pop()


@contextmanager
def paused() -> Iterator[None]:
    """While operators of this thread go into no graph: they are computed at once."""
    _tracing.graphs.append(None)
    try:
        yield
    finally:
        _tracing.graphs.pop()


def wait(recording: Any) -> None:
    """This thread has recorded what has not run yet; it runs before a value that it reads or changes is touched."""
    waiting = _tracing.waiting
    if not any(each is recording for each in waiting):
        waiting.append(recording)
        if len(waiting) > _WAITING:
            settle(waiting[:1])


def waits_no_longer(recording: Any) -> None:
    """What was recorded runs now."""
    _tracing.waiting = [each for each in _tracing.waiting if each is not recording]


def settle(recordings: Sequence[Any] | None = None) -> None:
    """Runs what this thread has recorded and not run: all of it, or these recordings."""
    if _tracing.settling or not _tracing.waiting:
        return
    with running():
        for recording in list(_tracing.waiting) if recordings is None else recordings:
            recording.flush()


@contextmanager
def running() -> Iterator[None]:
    """While something recorded runs, when nothing else may."""
    before, _tracing.settling = _tracing.settling, True
    try:
        yield
    finally:
        _tracing.settling = before


def settle_outside() -> None:
    """The same, where no graph is traced."""
    if _tracing.waiting and not _tracing.settling and current() is None:
        settle()


def current() -> Any:
    """The innermost graph that this thread is tracing, or None."""
    graphs = _tracing.graphs
    return graphs[-1] if graphs else None


def is_traced(graph: Any) -> bool:
    """Whether this thread is tracing the graph, be it around others."""
    return any(each is graph for each in _tracing.graphs)


@contextmanager
def building() -> Iterator[None]:
    """While a layer makes its weights, which happens once: what it assigns to them is assigned at once."""
    _tracing.building += 1
    try:
        yield
    finally:
        _tracing.building -= 1


def changed_by() -> Any:
    """The graph that is to assign to a variable what this thread's code assigns; None: the code itself, at once."""
    graph = current()
    if graph is None or (_tracing.building and not graph.records):
        return None
    return graph
