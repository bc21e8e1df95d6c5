"""An error in one process ends all of them; and none ends without a word."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from pydtconv.distribution.mpi.departures import Departures
from pydtconv.distribution.mpi.launch import World

#: seconds by which a rank's report comes after that of the rank before, so that one error in all is told once
_PAUSE, _LONGEST = 1.0, 4.0
#: seconds in which the launcher forwards what was printed, before it ends
_FORWARDED = 0.2
_departures: Departures | None = None
exit_at_once = os._exit


def install(world: World) -> Departures:
    """From now on an exception that nobody catches is printed with the rank, and ends all processes.

    A program that ends otherwise, by os._exit too, tells the others.
    """
    global _departures
    if _departures is not None:
        return _departures
    _departures = Departures(world)
    atexit.register(_departures.end, "has ended its program")
    os._exit = _exit_with_a_word(world, _departures)  # type: ignore[assignment]
    sys.exit = _exit_with_a_note(_departures)
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
    return _departures


def _exit_with_a_word(world: World, departures: Departures) -> Callable[[int], NoReturn]:
    """os._exit: launchers take a status of 0 without MPI's end for a good end of the whole job."""
    own = os.getpid()

    def leave(status: int) -> NoReturn:
        if os.getpid() == own and not world.mpi.Is_finalized():
            if status == 0:
                departures.end("has ended its program by os._exit(0)")
            else:
                text = f"pydtconv: rank {world.rank} on {world.hosts[world.rank]} ends by os._exit({status})"
                print(text, file=sys.stderr, flush=True)
                time.sleep(_FORWARDED)
        exit_at_once(status)

    return leave


def _exit_with_a_note(departures: Departures) -> Callable[..., NoReturn]:
    """sys.exit: the others, where they wait for this process, end with its status."""
    before = sys.exit

    def leave(status: Any = None, /) -> NoReturn:
        if threading.current_thread() is threading.main_thread():
            departures.status = 0 if status is None else status & 0xFF if isinstance(status, int) else 1
        before(status)

    return leave


def pause(rank: int) -> None:
    """Waits a little, so that the ranks before this one, which end all, tell an error first that they have too."""
    time.sleep(min(rank * _PAUSE, _LONGEST))


def abort(world: World, status: int) -> None:
    """Ends all processes with this status."""
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(_FORWARDED)
    world.mpi.COMM_WORLD.Abort(status)
