"""The limits of what runs now: those of a `fit`, which hold for its own steps alone, or of a `memory_limit` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Limits(NamedTuple):
    """The bytes that a step may take, and the folder that it may write tensors to; None: as many as it likes, none."""

    memory: int | None = None
    offload: str | None = None


NONE = Limits()
_limits: ContextVar[Limits] = ContextVar("_limits", default=NONE)
#: those of the block of `memory_limit` around this
_around: ContextVar[Limits] = ContextVar("_around", default=NONE)
current = _limits.get
around = _around.get


def set_to(limits: Limits) -> None:
    """For the rest of a block of `limited`."""
    _limits.set(limits)


@contextmanager
def limited(to: Limits | None = None) -> Iterator[None]:
    """Other limits within the block, by default those of the block of `memory_limit` around this."""
    token = _limits.set(around() if to is None else to)
    try:
        yield
    finally:
        _limits.reset(token)


@contextmanager
def held(limits: Limits) -> Iterator[None]:
    """Limits within the block for all that runs there, but for a `fit` with limits of its own."""
    token = _around.set(limits)
    try:
        with limited():
            yield
    finally:
        _around.reset(token)
