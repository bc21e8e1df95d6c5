"""A limit on the bytes of the objects that a file describes: what the file's own size justifies.

Who makes an array of a size that a file names claims its bytes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)


@contextmanager
def limited_memory(nbytes: int) -> Iterator[None]:
    """Within it, no more than so many bytes can be claimed in all."""
    token = _left.set([nbytes])
    try:
        yield
    finally:
        _left.reset(token)


def claim(nbytes: int, what: str) -> None:
    """Counts bytes that will be allocated.  Raises ValueError, which begins with `what`, where they are too many."""
    left = _left.get()
    if left is not None:
        left[0] -= nbytes
        if left[0] < 0:
            raise ValueError(f"{what}, more than the file's size allows")
