"""Ctrl-C and termination while training: held back until the step is done, so that a checkpoint can be written."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType
from typing import Any, NoReturn

from pydtconv import replica
from pydtconv.support.uninterrupted import ENDING

_TEXT = "\n%s: training ends after this step, with a checkpoint; once more ends it at once\n"


class Interrupts:
    """Notes SIGINT, SIGTERM and SIGHUP; a second one ends at once.

    Only in the main thread, and only where the program has no handler of its own.
    """

    def __init__(self) -> None:
        self._noted = False
        self._before: dict[int, Any] = {}

    @property
    def received(self) -> int | None:
        """The signal's number, None while there was none; the same in all processes that train together."""
        return replica.current().asked

    def hold(self) -> bool:
        """From here on signals are noted; False in a thread that they do not reach."""
        self._noted = False
        replica.current().ask_to_end(None)
        if threading.current_thread() is not threading.main_thread():
            return False
        for number in ENDING:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            if number not in self._before and signal.getsignal(number) is default:
                self._before[number] = signal.signal(number, self._note)
        return True

    def release(self) -> None:
        """Puts the former handlers back."""
        while self._before:
            signal.signal(*self._before.popitem())

    def end(self) -> NoReturn:
        """Ends as the signal would have: by KeyboardInterrupt, or with the exit status 143 (129 for SIGHUP)."""
        self._raise(self.received)

    def _raise(self, number: int | None) -> NoReturn:
        self.release()
        replica.current().ask_to_end(None)
        if number is None or number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._noted:
            self._raise(number)
        self._noted = True
        replica.current().ask_to_end(number)
        if replica.current().is_main:
            with contextlib.suppress(OSError):  # of a terminal that is closed
                os.write(2, (_TEXT % signal.Signals(number).name).encode())  # print may be what was interrupted
