"""Times of several sides that take turns in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Side = Callable[[], Any]

#: seconds between two sides: thread pools spin for a while after a call, on the cores that the next side wants
PAUSE = 0.04
#: calls that are timed, however long they take
LEAST = 3


def medians(
    sides: Mapping[str, Side],
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
    threads: int = 1,
    turns: int = 5,
) -> dict[str, float]:
    """Median seconds of a call of each side.

    The sides take turns for `seconds` in all, at least `turns` turns each.  A turn is a pause, in which the other
    sides' threads fall asleep (not on one thread), a call that is not counted, and one that is.
    """
    times: dict[str, list[float]] = {name: [] for name in sides}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, times.values())) < turns:
        for name, side in sides.items():
            if threads > 1:
                time.sleep(PAUSE)
            side()
            start = clock()
            side()
            times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def calls_of(sides: Mapping[str, Side], calls: int, seconds: float, warm: int = 3) -> dict[str, list[float]]:
    """Seconds of calls of each side, which take turns.

    `calls` of each, or fewer, but `LEAST`, where they would take longer than `seconds` for each side.  The first `warm`
    are not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in sides}
    end = 0.0
    for turn in range(-warm, calls):
        if turn == 0:
            end = time.perf_counter() + seconds * len(sides)
        if turn >= LEAST and time.perf_counter() > end:
            break
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            if turn >= 0:
                times[name].append(time.perf_counter() - start)
    return times
