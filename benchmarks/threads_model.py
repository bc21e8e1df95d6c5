"""What more cores would do, on paper: `python -m benchmarks.threads --model`.

A step is measured part by part on one thread of this machine.  On c cores a part is then expected to take the longest
of three times, and its barriers:

  work       its seconds on one thread, shared out in pieces: PIECE multiplications or PIECE_BYTES each, so that few
             pieces leave cores idle; the slices of backward_weights are at most SLICES
  memory     its bytes at the bandwidth of c cores: that of one core of this machine times c, and at most --memory GB/s
  barriers   BARRIERS a part, each BARRIER_SECONDS times log2(c)

What runs outside of the plan is serial and stays.  The bottleneck is what takes the most at the most cores beyond a
perfect share of the work.  The model knows nothing of NUMA: memory counts as if each core read its own node's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import report
from benchmarks.networks import Case
from benchmarks.step import profiled
from pydtconv import config
from pydtconv.profiling import Profile, Timing, memory_bandwidth

PIECE = 1 << 22
PIECE_BYTES = 1 << 18
SLICES = 16
BARRIERS = 2
BARRIER_SECONDS = 0.5e-6


@dataclass(frozen=True)
class Paper:
    """Cores that are thought of.  core: GB/s of one; memory: GB/s of all together."""

    cores: int
    core: float
    memory: float

    def parts(self, timing: Timing) -> dict[str, float]:
        """Seconds of a part by what they go to: they add up to its time."""
        if timing.index < 0:
            return {"serial": timing.seconds}
        perfect = timing.seconds / self.cores
        pieces = pieces_of(timing)
        shared = timing.seconds * math.ceil(pieces / self.cores) / pieces
        moving = 1e-9 * timing.bytes / min(self.memory, self.core * self.cores)
        waits = BARRIERS * BARRIER_SECONDS * math.log2(self.cores) if self.cores > 1 else 0.0
        return {
            "work": perfect,
            "few pieces": shared - perfect,
            "memory": max(0.0, moving - shared),
            "barriers": waits if pieces > 1 else 0.0,
        }

    def step(self, profile: Profile) -> dict[str, float]:
        """Seconds of a step by what they go to."""
        total = dict.fromkeys(("work", "few pieces", "memory", "barriers", "serial"), 0.0)
        for timing in profile.timings:
            for name, seconds in self.parts(timing).items():
                total[name] += seconds
        return total


def pieces_of(timing: Timing) -> int:
    """Pieces of a part that threads take one by one."""
    pieces = max(timing.multiplications // PIECE, timing.bytes // PIECE_BYTES, 1)
    return min(pieces, SLICES) if timing.direction == "backward_weights" else pieces


def measured_on_one(case: Case, steps: int) -> Profile:
    before = config.num_threads()
    config.set_num_threads(1)
    try:
        return profiled(case, steps).profile
    finally:
        config.set_num_threads(before)


def row_of(case: Case, profile: Profile, cores: Sequence[int], core: float, memory: float) -> dict[str, object]:
    """Expected times the speed of one core, and what is in the way at the most cores."""
    found = {c: Paper(c, core, memory).step(profile) for c in cores}
    one = sum(Paper(1, core, memory).step(profile).values())
    row: dict[str, object] = {
        "network": case.network,
        "images": case.size,
        "batch": case.batch,
        "1 core, ms": 1e3 * one,
    }
    row |= {f"{c} cores, times": one / sum(parts.values()) for c, parts in found.items()}
    last = found[cores[-1]]
    whole = sum(last.values())
    row |= {f"{name}, %": 100 * seconds / whole for name, seconds in last.items()}
    row["next bottleneck"] = max((name for name in last if name != "work"), key=last.__getitem__)
    return row


def run(cases: Sequence[Case], cores: Sequence[int], memory: float, steps: int, file: str) -> None:
    core = memory_bandwidth(1)
    rows = [row_of(case, measured_on_one(case, steps), cores, core, memory) for case in cases]
    title = f"on paper, {core:.0f} GB/s a core and at most {memory:.0f}; shares on {cores[-1]} cores"
    report.print_table(title, rows)
    print(report.write_csv(file, rows))
