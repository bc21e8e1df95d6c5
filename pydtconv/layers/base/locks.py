"""Turns: threads that use the same layers do so one after the other.

A layer has a turn, which a thread takes for as long as it touches weights, plans or the arena: for a step, not for a
whole `fit`.  Layers inside the same model share one turn, and so do models that share layers.  Turns are re-entrant.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

from pydtconv.layers.base import layer_tree


class Turn:
    """A re-entrant lock that may be joined with others.  A copy, or what is read from a pickle, is a new one."""

    _all: ClassVar[weakref.WeakSet[Turn]] = weakref.WeakSet()

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._joined: Turn | None = None
        Turn._all.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Turn, ()

    @property
    def root(self) -> Turn:
        """The turn that this one was joined with, or itself."""
        turn = self
        while turn._joined is not None:
            turn = turn._joined
        return turn

    @contextmanager
    def taken(self) -> Iterator[None]:
        """While this thread has the turn; Ctrl-C ends that wherever it comes: behind `with` a lock is never lost."""
        root = self.root
        with root._lock:
            if root._joined is None:
                yield
                return
        with root.taken():  # joined while this thread waited
            yield

    @classmethod
    def renew(cls) -> None:
        """Frees all turns, in a child process, but those of the thread that forked: the others do not exist there."""
        for turn in list(cls._all):
            if not turn._lock._is_owned():  # type: ignore[attr-defined]
                turn._lock = threading.RLock()


os.register_at_fork(after_in_child=Turn.renew)


def turn_of(layer: Any) -> Turn:
    """The turn of a layer and of all layers inside it."""
    turn: Turn = layer_tree.known(layer, "turn", _found)
    return turn.root


def _found(layer: Any) -> Turn:
    turns = {_own(inside).root for inside in layer._pydt_flatten_layers()}
    return turns.pop() if len(turns) == 1 else _join(turns)


def _own(layer: Any) -> Turn:
    turn = layer.__dict__.get("_pydt_turn")
    return layer.__dict__.setdefault("_pydt_turn", Turn()) if turn is None else turn


def _join(turns: Collection[Turn]) -> Turn:
    """One turn for all, made while nobody else has any of them."""
    while True:
        roots = sorted({turn.root for turn in turns}, key=id)
        keep = next((root for root in roots if root._lock._is_owned()), roots[0])  # type: ignore[attr-defined]
        with ExitStack() as held:
            for root in roots:
                held.enter_context(root._lock)
            if all(root._joined is None for root in roots):
                for root in roots:
                    if root is not keep:
                        root._joined = keep
                return keep
