"""What of the exchanges of halos is hidden over slow links: `python -m benchmarks.spatial_links`.

Each rank is a host of its own (benchmarks/hosts), with one thread; the links between them are shaped.  An image is cut
along its height; the network is that of `benchmarks.spatial`.  Steps that wait for each exchange before they go on
(overlap=False) and steps that compute meanwhile take turns in the same processes.  Columns, in ms of the median step of
the slowest rank:

- blocking, overlapped: whole steps; waiting b, waiting o: what of these is spent waiting for halos.
- hideable: of the waiting of a blocking step, what the computing beside each exchange is long enough for.
- hidden %: (waiting b - waiting o) / hideable; saved %: (blocking - overlapped) / hideable, with what the cores do for
  the network while they compute.

Rows of several runs go into one CSV file in benchmarks/results/.  Needs root; see benchmarks/hosts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.hosts import Hosts, missing

_KEY = ("D", "pixels", "ranks", "link")
MODES = ("blocking", "overlapped")
_TURNS = 2


class Side:
    """A model that is trained with or without overlap; an observer of its waiting."""

    def __init__(self, ranks: int, size: int, dilation: int, overlaps: bool) -> None:
        import numpy as np

        import pydtconv as keras
        from pydtconv import distribution, layers, replica

        mesh = distribution.DeviceMesh((ranks,), ("height",))
        distribution.set_distribution(distribution.SpatialParallel(mesh, overlap=overlaps))
        self.worker: Any = replica.current()
        inputs = keras.Input((size, size, 64))
        y = inputs
        for _ in range(2):
            y = layers.Conv2D(64, 3, padding="same", dilation_rate=dilation, use_bias=False)(y)
        self.model = keras.Model(inputs, y)
        self.model.compile("sgd", "mse")
        self.x = np.random.default_rng(0).standard_normal((1, size, size, 64), np.float32)
        self.waits: list[float] = []
        self.model.train_on_batch(self.x, self.x)

    def communicated(self, what: str, start: int, stop: int) -> None:
        """Of an observer of communication."""

    def waited(self, what: str, start: int, stop: int) -> None:
        if what.startswith("halo"):
            self.waits.append(1e-6 * (stop - start))

    def steps(self, count: int) -> list[tuple[float, list[float]]]:
        """Of each step its ms, and those of its waits in turn; one before is not counted."""
        from pydtconv import replica

        replica.set_current(self.worker)
        found = []
        for _ in range(count + 1):
            self.worker.observer, self.waits = self, []
            self.worker.meet("the next step")
            start = time.perf_counter()
            self.model.train_on_batch(self.x, self.x)
            found.append((1e3 * (time.perf_counter() - start), self.waits))
        self.worker.observer = None
        return found[1:]


def beside(profile: Any) -> list[float]:
    """ms of what is computed beside each exchange, in turn."""
    ms: dict[int, float] = {}
    for timing in profile.timings:
        ms[timing.index] = ms.get(timing.index, 0.0) + 1e3 * timing.seconds
    return [ms[timing.index - 1] for timing in profile.timings if timing.direction == "wait" and timing.index > 0]


def measured(size: int, dilation: int, steps: int) -> None:
    """One rank; the first one prints what all have found."""
    from pydtconv import config, replica
    from pydtconv.distribution.mpi.launch import world
    from pydtconv.profiling import Profiler

    here = world()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[here.rank % len(cores)]})
    config.set_num_threads(1)
    sides = {mode: Side(here.size, size, dilation, mode == "overlapped") for mode in MODES}
    taken: dict[str, list[tuple[float, list[float]]]] = {mode: [] for mode in MODES}
    for _ in range(_TURNS):
        for mode, side in sides.items():
            taken[mode] += side.steps(steps)
    replica.set_current(sides["overlapped"].worker)
    with Profiler(sides["overlapped"].model, steps=2, skip=0) as profiler:
        for _ in range(2):
            sides["overlapped"].model.train_on_batch(sides["overlapped"].x, sides["overlapped"].x)
    own = {mode: [statistics.median(ms for ms, _ in steps), _by_turn(steps)] for mode, steps in taken.items()}
    found = here.comm.gather({**own, "beside": beside(profiler.profile)})
    if here.rank == 0:
        print(json.dumps(found), flush=True)


def _by_turn(steps: list[tuple[float, list[float]]]) -> list[float]:
    return [statistics.median(waits) for waits in zip(*(waits for _, waits in steps), strict=True)]


def row(key: tuple[int, int, int, str], ranks: list[dict[str, Any]]) -> dict[str, object]:
    """The figures of the slowest rank."""
    found = max(ranks, key=lambda each: float(each["blocking"][0]))
    (blocking, before), (overlapped, after) = found["blocking"], found["overlapped"]
    hideable = sum(min(wait, compute) for wait, compute in zip(before, found["beside"], strict=True))
    return {
        **dict(zip(_KEY, key, strict=True)), "blocking": blocking, "overlapped": overlapped,
        "waiting b": sum(before), "waiting o": sum(after), "hideable": hideable,
        "hidden %": 100 * (sum(before) - sum(after)) / hideable, "saved %": 100 * (blocking - overlapped) / hideable,
        **report.origin(),
    }  # fmt: skip


def job(size: int, dilation: int, ranks: int, link: str, steps: int) -> dict[str, object]:
    from pydtconv.simulation import Network

    words = ["-m", "benchmarks.spatial_links", "--one", size, dilation, steps]
    with Hosts(ranks, Network.parse(link)) as hosts:
        done = hosts.run(words, capture_output=True, check=False, cwd=Path(__file__).parents[1])
    if done.returncode:
        raise SystemExit(f"{size} pixels on {ranks} hosts: status {done.returncode}\n{done.stderr[-3000:]}")
    return row((dilation, size, ranks, link), json.loads(done.stdout.splitlines()[-1]))


def merged(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The rows, and those of the CSV file that they do not replace."""
    new = {tuple(str(each[key]) for key in _KEY) for each in rows}
    old = [each for each in report.read_csv("spatial_links") if each.keys() == rows[0].keys()]
    kept = [each for each in old if tuple(str(each[key]) for key in _KEY) not in new]
    return sorted(kept + rows, key=lambda each: tuple(str(each[key]).rjust(12) for key in _KEY))


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        measured(*(int(word) for word in sys.argv[2:]))
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spatial_links",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 256, 512], help="rows and columns of the image")
    parser.add_argument("--dilations", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--link", default="1Gbps:100us", help="bandwidth:latency (default: 1Gbps:100us)")
    parser.add_argument("--steps", type=int, default=5, help="steps of each mode in each of two turns (default: 5)")
    options = parser.parse_args()
    reason = missing()
    if reason:
        raise SystemExit(f"benchmarks.spatial_links: {reason}")
    rows = []
    for dilation in options.dilations:
        for size in options.sizes:
            rows.append(job(size, dilation, options.ranks, options.link, options.steps))
            print(", ".join(f"{key} {report.cell(rows[-1][key])}" for key in list(rows[-1])[:-4]), flush=True)
    report.print_table("exchanges over links", rows)
    print(report.write_csv("spatial_links", merged(rows)))


if __name__ == "__main__":
    main()
