"""A progress bar over steps, drawn by tqdm on a terminal and in a notebook, and as plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from pydtconv.naming import printable
from pydtconv.support.messages import is_interactive_logging_enabled, tell

if TYPE_CHECKING:
    from tqdm import tqdm

_FORMAT = "{n_fmt}/{total_fmt} {bar:20} {desc}"
_FORMAT_WITHOUT_TARGET = "{n_fmt}/Unknown {desc}"
#: seconds until the first line within an epoch, and between others, where there is no terminal
FIRST_LINE, OTHER_LINES = 10.0, 30.0


def _is_terminal() -> bool:
    """Whether there is a standard output, which programs in the background may lack, and it is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def _is_notebook() -> bool:
    """Whether standard output is a cell of a notebook, which understands how a bar is drawn anew."""
    return type(sys.stdout).__module__.startswith("ipykernel")


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
        self._sums: dict[str, tuple[float, int]] = {}
        self._seen = 0
        self._start = time.perf_counter()
        self._bar: tqdm | None = None
        self._between_lines = OTHER_LINES if interval is None else interval
        self._next_line = self._start + (FIRST_LINE if interval is None else interval)
        if verbose == 1 and (_is_terminal() or _is_notebook()) and is_interactive_logging_enabled():
            from tqdm import tqdm  # not before there is something to draw

            self._bar = tqdm(
                total=target,
                file=sys.stdout,
                mininterval=0.05 if interval is None else interval,
                miniters=1,
                dynamic_ncols=True,
                ascii=not (sys.stdout.encoding or "").lower().startswith("utf"),
                bar_format=(_FORMAT if target else _FORMAT_WITHOUT_TARGET).replace(":20", f":{width}"),
            )

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
        advance, self._seen = current - self._seen, current
        if self._bar is not None:
            if finalize and self.target is None:
                self._bar.total = current
            self._bar.set_description_str(self._text(finalize), refresh=False)
            self._bar.update(advance)
            if finalize:
                self._bar.refresh()
                self._bar.close()
                self._bar = None
        elif finalize and self.verbose:
            tell(f"{current}/{self.target or current} - {self._text(True)}")
        elif self.verbose == 1 and time.perf_counter() >= self._next_line:
            self._next_line = time.perf_counter() + self._between_lines
            tell(f"{current}/{self.target or 'Unknown'} - {self._text(False)}")

    def add(self, n: int, values: Iterable[tuple[str, Any]] | None = None) -> None:
        """Moves n steps on."""
        self.update(self._seen + n, values)

    def _text(self, finished: bool) -> str:
        elapsed = time.perf_counter() - self._start
        per_step = elapsed / max(self._seen, 1)
        if finished or self.target is None:
            parts = [_duration(elapsed)]
        else:
            parts = [_duration(per_step * (self.target - self._seen)) + " left"]
        parts.append(f"{_per_step(per_step)}/{self.unit_name}")
        parts += [f"{name}: {_number(total / count)}" for name, (total, count) in self._sums.items()]
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
