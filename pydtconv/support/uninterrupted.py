"""Ctrl-C that waits: for what must be done wholly or not at all, and takes a moment."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

#: the signals that ask a program to end: a request, a terminal that is closed, Ctrl-C
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Within it the signals of ENDING are noted; the program's own handlers are called at its end.

    Handlers run in the main thread alone, so elsewhere there is nothing to hold back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[tuple[int, FrameType | None]] = []
    handlers = {int(number): signal.getsignal(number) for number in ENDING}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in held:
            signal.signal(number, lambda *received: noted.append(received))
        yield
    finally:
        for number, handler in held.items():  # Ctrl-C last: it may come in between
            signal.signal(number, handler)
        for number, frame in noted:
            held[number](number, frame)
