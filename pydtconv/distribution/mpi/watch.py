"""Who keeps the others waiting.

A process that waits tells those that ask what it waits for.  One that has waited for too long asks all others; those
that do not answer, because they are stopped, dead or busy with something else, or that wait for something else, are
who everybody is waiting for.  They are named, and MPI is told to end all processes.  So it is, and soon, where one has
said that it leaves, or is seen to be dead on this host.

A process that dies within MPI may leave shared memory locked, and then MPI does not return in the others.  So a thread
watches whether it does; it asks nobody, but looks at the processes of this host.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv.distribution.mpi.departures import Departures
from pydtconv.distribution.mpi.failure import abort, exit_at_once, pause
from pydtconv.distribution.mpi.launch import World

_ASK, _ANSWER = 1, 2
#: seconds between two looks, and for which answers are waited for
_INTERVAL, _GRACE = 0.05, 1.0
#: seconds between two looks at the processes of this host
_HOST = 1.0
#: seconds of one look at most that count: a process that was stopped itself has not been waiting
_COUNTED = 1.0
#: seconds beyond the time-out after which the thread ends the process, which the process had not managed to do itself
_BEYOND = 4.0
_TEXT = 120
DEAD = "is dead"


def stall_timeout() -> float:
    """Seconds after which waiting is an error, `PYDTCONV_STALL_TIMEOUT`, 300 by default; 0 means never."""
    text = os.environ.get("PYDTCONV_STALL_TIMEOUT", "").strip()
    try:
        seconds = float(text or 300)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise ValueError(f"PYDTCONV_STALL_TIMEOUT: expected seconds, 0 or more, got {text!r}")
    return seconds


class Watch:
    """Measures how long this process has waited, and answers others.

    what: what it is in MPI for, or empty; ticks: grows with each call that has returned from there.
    """

    def __init__(self, world: World, departures: Departures | None = None) -> None:
        self.comm = world.comm.Dup()
        self.departures = departures
        self.mpi = world.mpi
        self.world = world
        self.timeout = stall_timeout()
        self.what = ""
        self._count = 0
        self._waited = 0.0
        self._last = 0.0
        self._missed = 0.0
        self._next_host = _HOST
        others = [rank for rank in world.neighbours() if rank != world.rank]
        self._seen = [rank for rank in others if process_state(world.pids[rank]) != DEAD]
        self._sent: list[Any] = []
        self.ticks = 0
        if self.timeout:
            threading.Thread(target=self._guard, name="pydtconv-watch", daemon=True).start()

    def enter(self, what: str) -> None:
        """This process begins to wait."""
        self.what = what
        self._count += 1
        self.ticks += 1
        self._waited, self._last, self._missed, self._next_host = 0.0, 0.0, 0.0, _HOST

    def leave(self) -> None:
        """It waits no longer."""
        self.what = ""
        self.ticks += 1

    def look(self) -> None:
        """Called often while waiting: answers others, and ends everything when it has been too long."""
        self.ticks += 1
        now = time.monotonic()
        if not self._last:
            self._last = now
        if now - self._last < _INTERVAL:
            return
        passed = min(now - self._last, _COUNTED)
        self._waited += passed
        self._last = now
        self._answer()
        self._look_for_departures(passed)
        if self._waited > self._next_host:
            self._next_host = self._waited + _HOST
            if self._dead():
                self._find_out()
        if self.timeout and self._waited > self.timeout:
            self._find_out(" (PYDTCONV_STALL_TIMEOUT)")

    def _look_for_departures(self, passed: float) -> None:
        """Ends everything where this process has waited for some time since another one said that it leaves."""
        gone = self.departures.look() if self.departures is not None else {}
        self._missed += passed if gone else 0.0
        if self._missed > _GRACE:
            told = " and ".join(f"rank {rank} on {self.world.hosts[rank]}, which {why}" for rank, why in gone.items())
            there = [rank for rank in range(self.world.size) if rank not in gone]
            pause(there.index(self.world.rank))
            statuses = [] if self.departures is None else [self.departures.statuses.get(rank, 0) for rank in gone]
            self._end(f"rank {self.world.rank} waits in {self.what} for {told}", max(statuses, default=0) or 1)

    def _dead(self) -> list[int]:
        """The ranks of this host that have died."""
        return [rank for rank in self._seen if process_state(self.world.pids[rank]) == DEAD]

    def _message(self) -> np.ndarray:
        text = f"{self._count}\n{self.what}".encode()[:_TEXT]
        return np.frombuffer(text.ljust(_TEXT), np.uint8)

    def _answer(self) -> None:
        status = self.mpi.Status()
        while self.comm.Iprobe(self.mpi.ANY_SOURCE, _ASK, status):
            self.comm.Recv(np.empty(_TEXT, np.uint8), status.source, _ASK)
            self._send(status.source, _ANSWER)

    def _send(self, rank: int, tag: int) -> None:
        buffer = self._message()
        self._sent = [(request, kept) for request, kept in self._sent if not request.Test()]
        self._sent.append((self.comm.Isend(buffer, rank, tag), buffer))

    def _find_out(self, why: str = "") -> None:
        others = [rank for rank in range(self.comm.size) if rank != self.comm.rank]
        for rank in others:
            self._send(rank, _ASK)
        answers: dict[int, tuple[int, str]] = {}
        end = time.monotonic() + _GRACE
        status = self.mpi.Status()
        while time.monotonic() < end and len(answers) < len(others):
            self._answer()
            if self.comm.Iprobe(self.mpi.ANY_SOURCE, _ANSWER, status):
                buffer = np.empty(_TEXT, np.uint8)
                self.comm.Recv(buffer, status.source, _ANSWER)
                count, _, what = buffer.tobytes().decode(errors="replace").rstrip().partition("\n")
                answers[status.source] = (int(count), what)
            time.sleep(1e-3)
        self._end(self.verdict({rank: answers.get(rank) for rank in others}) + why)

    def verdict(self, answers: dict[int, tuple[int, str] | None]) -> str:
        """What is wrong, from what each other process answered: the number of its wait and what it is for."""
        silent = [self._told(rank) for rank, answer in answers.items() if answer is None]
        astray = [
            f"rank {rank} waits for {answer[1]!r} instead"
            for rank, answer in answers.items()
            if answer is not None and answer != (self._count, self.what)
        ]
        text = f"rank {self.comm.rank} has waited {self._waited:.0f} s in {self.what}"
        if silent:
            text += f" for {' and '.join(silent)}"
        if astray:
            text += f"; {', '.join(astray)}"
        if not silent and not astray:
            text += ", as all others do: the network carries nothing"
        return text

    def _told(self, rank: int) -> str:
        """A rank that does not answer, and what can be seen of it from here."""
        text = f"rank {rank} on {self.world.hosts[rank]}"
        state = process_state(self.world.pids[rank]) if rank in self.world.neighbours() else None
        return f"{text}, which {state or 'does not answer: it is stopped, dead, or too slow'}"

    def _guard(self) -> None:
        """The thread: ends this process where MPI has not returned for too long."""
        ticks, stuck, last = -1, 0.0, time.monotonic()
        while True:
            time.sleep(_INTERVAL * 4)
            now = time.monotonic()
            stuck = stuck + min(now - last, _COUNTED) if self.what and ticks == self.ticks else 0.0
            ticks, last = self.ticks, now
            if stuck > self.timeout + _BEYOND or (stuck > _BEYOND and self._dead()):
                text = f"rank {self.world.rank} has been in MPI for {stuck:.0f} s, in {self.what}"
                others = [rank for rank in self.world.neighbours() if rank != self.world.rank]
                gone = [self._told(rank) for rank in others if process_state(self.world.pids[rank])]
                print(f"pydtconv: {text}{' for ' * bool(gone)}{' and '.join(gone)}", file=sys.stderr, flush=True)
                exit_at_once(1)

    def _end(self, text: str, status: int = 1) -> None:
        print(f"pydtconv: {text}", file=sys.stderr, flush=True)
        abort(self.world, status)


def process_state(pid: int) -> str | None:
    """Whether a process of this host "is dead" or "is stopped"; None where it is neither, or that is not known."""
    if not Path("/proc/self/stat").exists():
        return None
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return DEAD
    return {"Z": DEAD, "X": DEAD, "T": "is stopped", "t": "is stopped"}.get(letter)
