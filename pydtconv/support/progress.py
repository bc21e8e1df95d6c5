"""A progress bar over steps: a line drawn anew on a terminal and in a notebook, plain lines elsewhere."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from pydtconv.naming import printable
from pydtconv.support import messages
from pydtconv.support.messages import is_interactive_logging_enabled, tell

#: seconds until the first line within an epoch, and between others, where there is no terminal
FIRST_LINE, OTHER_LINES = 10.0, 30.0
#: columns beside a drawn line that are cleared with it: what a terminal shows of Ctrl-C
_ECHO = 4


def _columns() -> float:
    """Columns in which a line can be drawn anew: those of a terminal, infinitely many in a notebook, else 0.

    Programs in the background may lack a standard output.  A terminal that says that it has no columns is a pipe.
    """
    if type(sys.stdout).__module__.startswith("ipykernel"):
        return math.inf
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 0
    except (AttributeError, OSError, ValueError):
        return 0


class Progbar:
    """Shows how far a loop has come, with the values it reports.

    target: number of steps, None when not known.  verbose: 0 silent, 1 a bar on a terminal and in a notebook, elsewhere
    a line from time to time and one at the end, 2 one line at the end.  stateful_metrics: names of values that are
    shown as they come; all others are averaged over steps; where stateless_metrics are named, those alone are averaged.
    interval: least seconds between two drawings, or lines; by default 0.05, and of lines 30.  unit_name: what a step is
    called.
    """

    def __init__(
        self,
        target: int | None,
        width: int = 20,
        verbose: int = 1,
        interval: float | None = None,
        stateful_metrics: Iterable[str] | None = None,
        stateless_metrics: Iterable[str] | None = None,
        unit_name: str = "step",
    ) -> None:
        if stateful_metrics is not None and stateless_metrics is not None:
            raise ValueError("Progbar: expected stateful_metrics or stateless_metrics, got both")
        self.target = target
        self.verbose = verbose
        self.unit_name = unit_name
        self.stateful_metrics = set(stateful_metrics or ())
        self.stateless_metrics = None if stateless_metrics is None else set(stateless_metrics)
        self.width = width
        #: what the last line ends with
        self.note = ""
        self._sums: dict[str, tuple[float, int]] = {}
        self._seen = 0
        self._start = time.perf_counter()
        self._draws = verbose == 1 and _columns() > 0 and is_interactive_logging_enabled()
        self._drawn = ""
        first, others = (0.0, 0.05) if self._draws else (FIRST_LINE, OTHER_LINES)
        self._between_lines = others if interval is None else interval
        self._next_line = self._start + (first if interval is None else interval)

    def update(
        self, current: int, values: Iterable[tuple[str, Any]] | None = None, finalize: bool | None = None
    ) -> None:
        """Moves to step `current` with the (name, value) pairs seen since the last call.

        finalize: whether this is the last call; by default, when current has reached the target.
        """
        for name, value in values or ():
            number = float(np.mean(value))  # several numbers are shown as their mean
            averaged = self.stateless_metrics is None or name in self.stateless_metrics
            if name in self.stateful_metrics or not averaged:
                self._sums[name] = (number, 1)
            else:
                total, count = self._sums.get(name, (0.0, 0))
                weight = max(current - self._seen, 1)
                self._sums[name] = (total + number * weight, count + weight)
        if finalize is None:
            finalize = self.target is not None and current >= self.target
        self._seen = current
        if finalize:
            self.clear()
            if self.verbose:
                tell(self._line(True))
        elif self.verbose == 1 and time.perf_counter() >= self._next_line:
            self._next_line = time.perf_counter() + self._between_lines
            if self._draws:
                self._draw()
            else:
                tell(self._line(False))

    def add(self, n: int, values: Iterable[tuple[str, Any]] | None = None) -> None:
        """Moves n steps on."""
        self.update(self._seen + n, values)

    def clear(self) -> None:
        """Takes the line away that was drawn, so that another text can stand in its place."""
        if self._drawn:
            blank = min(len(self._drawn) + _ECHO, _columns() - 1)
            print("\r" + " " * int(max(blank, 0)), end="\r", flush=True)
            self._leave()

    def close(self) -> None:
        """Leaves the line as it was drawn last, where the steps end before they are done."""
        if self._drawn:
            print(flush=True)
            self._leave()

    def _leave(self) -> None:
        self._drawn = ""
        messages.line_left(self)

    def _draw(self) -> None:
        """Draws the line anew, cut to what the terminal has; another one's line gives way."""
        if not self._drawn:
            messages.line_drawn(self)
        columns, before = _columns(), len(self._drawn)
        line = self._line(False)
        self._drawn = line if columns == math.inf else line[: max(int(columns) - 1, 0)]
        print("\r" + self._drawn.ljust(before), end="", flush=True)

    def _line(self, finished: bool) -> str:
        """How far it has come, and the results.  The bar gives way where the whole has no room beside it."""
        count = f"{self._seen}/{self.target or (self._seen if finished else 'Unknown')}"
        text = self._text(finished)
        if not self._draws or not self.target or len(count) + self.width + len(text) + 2 > _columns():
            return f"{count} - {text}"
        full = "\u2588" if (sys.stdout.encoding or "").lower().startswith("utf") else "#"
        bar = full * round(self.width * min(self._seen / self.target, 1))
        return f"{count} {bar:{self.width}} {text}"

    def _text(self, finished: bool) -> str:
        elapsed = time.perf_counter() - self._start
        per_step = elapsed / max(self._seen, 1)
        if finished or self.target is None:
            parts = [_duration(elapsed)]
        else:
            parts = [_duration(per_step * (self.target - self._seen)) + " left"]
        parts.append(f"{_per_step(per_step)}/{self.unit_name}")
        parts += [f"{name}: {_number(total / count)}" for name, (total, count) in self._sums.items()]
        parts += [self.note] if finished and self.note else []
        return printable(" - ".join(parts))


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _per_step(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.1f}s"
    return f"{seconds * 1e3:.0f}ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us"


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) > 1e-3 or value == 0 else f"{value:.4e}"
