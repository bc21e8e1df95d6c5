"""Times the algorithms of convolutions, outside of training, for later choices to go by."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from pydtconv.conv import timings
from pydtconv.conv.functional import bind, run, scratch
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import ranking, workspace_bytes

#: an algorithm that took this many times as long as the fastest is not timed again
HOPELESS = 2.0
ROUNDS = 15

Task = tuple[ConvProblem, str]  # a problem and a pass of it
Progress = Callable[[int, int, Task], None]


@dataclass
class Tuned:
    """What tuning found: seconds by algorithm of each task, and the tasks that time did not suffice for."""

    seconds: dict[Task, dict[str, float]] = field(default_factory=dict)
    left: list[Task] = field(default_factory=list)


def tune(
    tasks: Iterable[Task],
    seconds: float = 60.0,
    workspace_limit: int | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> Tuned:
    """Times all algorithms of each task with the threads now set, and keeps the results (see timings.py).

    seconds: what all of it may take; the tasks that are left then keep the ranking by cost model.  workspace_limit:
    bytes; algorithms that need more are not timed, and so not preferred.  again: also tasks that have been timed
    before.  progress(done, of, task) is called before each task.

    The ranking of "fast" precision is timed; where "strict" is in force, choices pass over what it leaves out.
    Plans that were made before keep their algorithms.
    """
    found, end = Tuned(), time.perf_counter() + seconds
    todo = list(dict.fromkeys(tasks))
    fresh: dict[str, dict[str, float]] = {}
    for i, task in enumerate(todo):
        p, direction = task
        names = [name for name in ranking(p, direction) if _fits(task, name, workspace_limit)]
        known = timings.measured(p, direction)
        if not again and known and set(names) <= set(known):
            found.seconds[task] = dict(known)
            continue
        left = end - time.perf_counter()
        if left <= 0:
            found.left.append(task)
            continue
        if progress is not None:
            progress(i, len(todo), task)
        if names:
            found.seconds[task] = fresh[timings.key(p, direction)] = measure(
                p, direction, names, left / (len(todo) - i)
            )
    if fresh:
        timings.add(fresh)
    return found


def measure(p: ConvProblem, direction: str, names: list[str], seconds: float) -> dict[str, float]:
    """The best time of each algorithm on random arrays; they take turns until `seconds` are over, at least one each."""
    random = np.random.default_rng(0)
    x, w, y = (random.standard_normal(shape).astype(p.dtype) for shape in (p.x_shape, p.w_shape, p.y_shape))
    workspace = scratch(max(workspace_bytes(p, direction, name) for name in names))
    calls = {name: bind(p, direction, name, x, w, y) for name in names}
    best: dict[str, float] = {}
    end = time.perf_counter() + seconds
    for turn in range(ROUNDS):
        for name in names:
            if turn and (best[name] > HOPELESS * min(best.values()) or time.perf_counter() > end):
                continue
            if not turn:
                run(calls[name], workspace)  # touches the workspace, wakes the threads
            start = time.perf_counter()
            run(calls[name], workspace)
            best[name] = min(best.get(name, np.inf), time.perf_counter() - start)
    return best


def _fits(task: Task, name: str, workspace_limit: int | None) -> bool:
    return workspace_limit is None or workspace_bytes(*task, name) <= workspace_limit
