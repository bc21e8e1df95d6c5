"""The limits of a `fit`, which hold for its own steps alone: not for what callbacks and other threads ask for."""

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
current = _limits.get


def set_to(limits: Limits) -> None:
    """For the rest of a block of `limited`."""
    _limits.set(limits)


@contextmanager
def limited(to: Limits = NONE) -> Iterator[None]:
    """Other limits within the block, by default none."""
    token = _limits.set(to)
    try:
        yield
    finally:
        _limits.reset(token)
