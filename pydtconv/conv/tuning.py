"""Times the algorithms of convolutions, outside of training, for later choices to go by.

`Bench` is what they are timed on: this CPU.  That of a device with memory of its own is devices/tuning.py's.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from pydtconv import dtypes
from pydtconv.conv import bases, matmul_precision, timings
from pydtconv.conv.algorithms import TABLE, Algorithm
from pydtconv.conv.bound_passes import bind, run, scratch
from pydtconv.conv.problem import ConvProblem
from pydtconv.conv.selection import ranking, workspace_bytes

#: an algorithm that took this many times as long as the fastest is not timed again: at once, and after some turns
HOPELESS, BEHIND = 2.0, 1.25
EARLY_TURNS, ROUNDS = 3, 15
#: bases of an algorithm that are timed besides the one that the cost model puts first
OTHER_BASES = 3
#: seconds of an algorithm after which some turns suffice
ENOUGH = 0.15

Task = tuple[ConvProblem, str]  # a problem and a pass of it
Progress = Callable[[int, int, Task], None]


class Bench:
    """What passes are timed on: this CPU, with the threads now set.

    device: its name in the kept times.  all_bases: also those that fbfft's authors try (`bases.interpolated`).
    """

    device = "cpu"

    def __init__(self, all_bases: bool = False) -> None:
        self.all_bases = all_bases

    def names(self, p: ConvProblem, direction: str) -> list[str]:
        """The algorithms of a pass, the one with the least expected time first, and some of their bases."""
        names = list(_ranking(p, direction))
        return [*dict.fromkeys(names + [row.name for name in names for row in self._others(name, p, direction)])]

    def _others(self, name: str, p: ConvProblem, direction: str) -> list[Algorithm]:
        """An algorithm with other bases."""
        row = TABLE[name]
        tried = bases.interpolated(p) if self.all_bases and row.has_basis else []
        further = [row.with_basis(basis) for basis in tried if bases.seconds(p, direction, basis, row.family) > 0]
        return row.others(p, direction, OTHER_BASES) + further

    def seconds(self, p: ConvProblem, direction: str, name: str) -> float:
        """By a cost model; only ratios count."""
        return TABLE[name].seconds(p, direction)

    def least(self, p: ConvProblem, direction: str) -> float:
        """Of the algorithm that is expected to be the fastest."""
        return self.seconds(p, direction, _ranking(p, direction)[0])

    def workspace_bytes(self, p: ConvProblem, direction: str, name: str) -> int:
        return workspace_bytes(p, direction, name)

    def measure(self, p: ConvProblem, direction: str, names: list[str], seconds: float) -> dict[str, float]:
        """The best time of each, within so many seconds for all of them."""
        return measure(p, direction, names, seconds)


@dataclass
class Tuned:
    """What tuning found.

    seconds: by algorithm, of each task.  fresh: how many of them are new.  left: tasks that time did not suffice for.
    """

    seconds: dict[Task, dict[str, float]] = field(default_factory=dict)
    fresh: int = 0
    left: list[Task] = field(default_factory=list)


def tune(
    tasks: Iterable[Task],
    seconds: float = 60.0,
    workspace_limit: int | None = None,
    again: bool = False,
    progress: Progress | None = None,
    near: float | None = None,
    final: bool = False,
    bench: Bench | None = None,
) -> Tuned:
    """Times the algorithms of each task with the threads now set, and keeps the results (see timings.py).

    seconds: what all of it may take, waiting for other processes that tune included; the tasks that by the cost model
    take the longest, over all their occurrences, come first, and those that are left keep the ranking by cost model.
    workspace_limit: bytes; algorithms that need more are not timed, and so not preferred.  again: also tasks that have
    been timed before.  progress(done, of, task) is called before each task.  near: leaves out algorithms that by the
    cost model take more than so many times the best one's time.  final: tasks that are left are noted as decided, and
    tasks that have been decided before are passed over, whatever was timed of them.  bench: what they are timed on,
    None for this CPU.

    The ranking of "fast" precision is timed; where "strict" is active, choices pass over what it leaves out.
    Plans that were made before keep their algorithms.
    Raises OSError where results cannot be kept: before anything is timed, unless the disk is full.
    """
    end = time.perf_counter() + seconds
    counts, bench = Counter(tasks), bench or Bench()
    with timings.alone(seconds):
        tuning = _Tuning(end, workspace_limit, near, Tuned(), bench)
        todo = []
        for task in counts:
            names, known = tuning.names(task), timings.measured(*task, bench.device)
            if timings.decided(*task, bench.device) if final else not again and known and set(names) <= set(known):
                tuning.found.seconds[task] = dict(known)
            else:
                todo.append(task)
        todo.sort(key=lambda task: -tuning.estimate(task, counts))
        try:
            for i, task in enumerate(todo):
                tuning.time(task, i, len(todo), progress)
        finally:
            fresh = dict(tuning.fresh)
            if final:
                fresh |= {timings.key(*task, bench.device): {} for task in [*tuning.found.left, *tuning.without]}
            if fresh:
                timings.add(fresh)
    return tuning.found


@dataclass
class _Tuning:
    """What is found, within what limits."""

    end: float
    workspace_limit: int | None
    near: float | None
    found: Tuned
    bench: Bench
    fresh: dict[str, dict[str, float]] = field(default_factory=dict)
    without: list[Task] = field(default_factory=list)  # that no algorithm is to be timed for

    def names(self, task: Task) -> list[str]:
        """The algorithms to be timed, at least the cost model's first where any fits."""
        limit, names = self.workspace_limit, self.bench.names(*task)
        if limit is not None:
            names = [name for name in names if self.bench.workspace_bytes(*task, name) <= limit]
        if self.near is not None and names:
            bound = self.near * self.bench.seconds(*task, names[0])
            names = [name for name in names if self.bench.seconds(*task, name) <= bound]
        return names

    def time(self, task: Task, done: int, of: int, progress: Progress | None) -> None:
        left = self.end - time.perf_counter()
        if left <= 0:
            self.found.left.append(task)
            return
        if progress is not None:
            progress(done, of, task)
        names = self.names(task)
        if not names:
            self.without.append(task)
        else:
            times = self.bench.measure(*task, names, left / (of - done))
            self.found.seconds[task] = self.fresh[timings.key(*task, self.bench.device)] = times
            self.found.fresh += 1

    def estimate(self, task: Task, counts: Mapping[Task, int]) -> float:
        """Seconds of all occurrences of a task, by the cost model."""
        return counts[task] * self.bench.least(*task)


def _ranking(p: ConvProblem, direction: str) -> tuple[str, ...]:
    """Of "fast" precision, with the active products."""
    return ranking(p, direction, of_bfloat16=matmul_precision.in_force())


def measure(p: ConvProblem, direction: str, names: list[str], seconds: float) -> dict[str, float]:
    """The best time of each algorithm on random arrays, as `in_turns` finds it."""
    some = np.random.default_rng(0).standard_normal(1 << 16).astype(p.real)
    images = dtypes.to_bits(some) if p.dtype == dtypes.BFLOAT16 else some
    x, w, y = (np.resize(*each) for each in ((images, p.x_shape), (some, p.w_shape), (images, p.y_shape)))
    workspace = scratch(max(workspace_bytes(p, direction, name) for name in names))
    calls = {name: bind(p, direction, name, x, w, y) for name in names}

    def seconds_of(name: str, turn: int) -> float:
        if not turn:
            run(calls[name], workspace)  # touches the workspace, wakes the threads
        start = time.perf_counter()
        run(calls[name], workspace)
        return time.perf_counter() - start

    return in_turns(names, seconds_of, seconds)


def in_turns(names: list[str], seconds_of: Callable[[str, int], float], seconds: float) -> dict[str, float]:
    """The best time of each; they take turns until `seconds` are over, at least one each.

    seconds_of(name, turn): of one run.
    """
    best, spent = dict.fromkeys(names, np.inf), dict.fromkeys(names, 0.0)
    end = time.perf_counter() + seconds
    for turn in range(ROUNDS):
        for name in names:
            if turn and (_settled(turn, spent[name], best[name] / min(best.values())) or time.perf_counter() > end):
                continue
            took = seconds_of(name, turn)
            best[name], spent[name] = min(best[name], took), spent[name] + took
    return best


def _settled(turn: int, spent: float, behind: float) -> bool:
    """Whether an algorithm that took so many seconds in all, and so many times the best one's time, needs no more."""
    if turn < EARLY_TURNS:
        return behind > HOPELESS
    return behind > BEHIND or spent > ENOUGH
