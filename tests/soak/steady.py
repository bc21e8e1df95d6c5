"""Processes that train again and again: what they take of the system must not grow."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from tests.soak import processes

NAMES = ("memory, KiB", "open files", "threads")
#: the share of the turns at the start that does not count: arenas, caches and thread stacks are made there
_START = 0.4
#: growth of memory in an hour that is allowed; and in a soak that is shorter, KiB
_GROWTH, _LEAST = 0.01, 1024


class Steady:
    """A context manager.  findings: what has grown, in words."""

    def __init__(self, folder: Path, ranks: list[int], seconds: float) -> None:
        self.folders = {count: folder / f"steady{count}" for count in ranks}
        self.seconds = seconds
        self.findings: list[str] = []
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._rows: list[str] = []

    def __enter__(self) -> Steady:
        for count, folder in self.folders.items():
            (folder / "disk").mkdir(parents=True)
            self._running[count] = processes.start(folder, count, "epoch", self.seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for count, process in self._running.items():
            processes.end(process, self.folders[count])

    def wait(self) -> None:
        """Until they have ended; looks at what they have written."""
        for count, process in self._running.items():
            status = process.wait(120)
            if status:
                told = (self.folders[count] / "output").read_text()[-2000:]
                self.findings.append(f"exit status {status} of {count} ranks that train again and again\n{told}")
            for path in sorted(self.folders[count].glob("usage.*")):
                self._look(count, path)

    def _look(self, count: int, path: Path) -> None:
        turns: Any = np.loadtxt(path, ndmin=2)
        turns = turns[int(len(turns) * _START) :]
        who = f"{count} ranks, rank {path.suffix[1:]}"
        if len(turns) < 6:
            self._rows.append(f"{who:18} {len(turns):6}  too few turns")
            return
        # the least of the first and of the last third: what is taken between two turns
        third = len(turns) // 3
        first, last = turns[:third].min(0), turns[-third:].min(0)
        hours = self.seconds / 3600 * (1 - _START) * 2 / 3
        allowed = [max(first[0] * _GROWTH * hours, _LEAST), 0, 0]
        told = ", ".join(f"{name} {a:.0f} -> {b:.0f}" for name, a, b in zip(NAMES, first, last, strict=False))
        self._rows.append(f"{who:18} {len(turns):6}  {told}")
        for name, a, b, most in zip(NAMES, first, last, allowed, strict=False):
            if b - a > most:
                self.findings.append(f"{who}: {name} {a:.0f} at first, {b:.0f} at last, in {len(turns)} turns")

    def table(self) -> str:
        return "\n".join([f"{'steady':18} {'turns':>6}  first third -> last third", *self._rows])
