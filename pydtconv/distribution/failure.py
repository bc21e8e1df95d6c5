"""An error in one process ends all of them."""

from __future__ import annotations

import sys
import time
import traceback
from types import TracebackType
from typing import Any

from pydtconv.distribution.launch import World

#: seconds by which a rank's report comes after that of the rank before, so that one error in all is told once
_PAUSE, _LONGEST = 1.0, 4.0
#: seconds in which the launcher forwards what was printed, before it ends
_FORWARDED = 0.2
_installed = False


def install(world: World) -> None:
    """From now on an exception that nobody catches is printed with the rank, and ends all processes."""
    global _installed
    if _installed:
        return
    _installed = True
    before = sys.excepthook

    def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        if world.mpi.Is_finalized():
            return before(kind, error, trace)
        pause(world.rank)
        if issubclass(kind, KeyboardInterrupt):
            before(kind, error, trace)
            return abort(world, 130)
        text = "".join(traceback.format_exception(kind, error, trace))
        print(f"pydtconv: rank {world.rank} on {world.hosts[world.rank]} failed\n{text}", file=sys.stderr, flush=True)
        abort(world, 1)

    sys.excepthook = report


def pause(rank: int) -> None:
    """Waits a little, so that the ranks before this one, which end all, tell an error first that they have too."""
    time.sleep(min(rank * _PAUSE, _LONGEST))


def abort(world: World, status: int) -> None:
    """Ends all processes with this status."""
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(_FORWARDED)
    world.mpi.COMM_WORLD.Abort(status)
