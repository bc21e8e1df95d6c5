"""Lets communication go on while this process computes.

Messages move only while somebody is in MPI, but for what the system's buffers hold, some milliseconds' worth on a fast
network; a node of a plan may take longer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pydtconv._ext import runtime
from pydtconv.distribution.communicator import Communicator

#: seconds between two looks
_INTERVAL = 3e-3


class Progress:
    """A thread that looks at communication now and then, between `begin` and `end`.

    look: called by it, beside whatever else this process does; what it computes is computed by this thread alone, as
    the cores are busy.  Without threads in MPI it does nothing.
    """

    def __init__(self, communicator: Communicator, look: Callable[[], None]) -> None:
        self._look = look
        mpi = communicator.mpi
        self._possible = mpi.Query_thread() == mpi.THREAD_MULTIPLE
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def begin(self) -> None:
        if self._thread is None and self._possible:
            self._ended.clear()
            self._thread = threading.Thread(target=self._run, name="pydtconv-progress", daemon=True)
            self._thread.start()

    def end(self) -> None:
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        runtime.compute_alone()
        while not self._ended.wait(_INTERVAL):
            self._look()
