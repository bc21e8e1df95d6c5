"""Two ranks of one thread beside one rank of two: `python -m benchmarks.ranks`.

Both train the same network on the same global batch of random images by SGD with momentum in float32, on as many cores,
in fresh processes; in each round both have a turn, and the one that was second is first in the next.  images/s is of
the median step over all rounds, the ratio that of the ranks over the threads; lowest, highest: the ratio within a
round.  MiB are the peaks of all ranks added, in which memory that they share counts several times.  The rest splits a
step of the first rank, in further steps that are profiled: what the plan computes, the optimizer (one process applies
gradients within backward, which is the same kind of work), waiting for other ranks, and what is left, in which
communication proceeds.  A CSV file and a picture go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import memory, report
from benchmarks.networks import NETWORKS, Case, cases, compiled
from benchmarks.processes import in_own_process

Result = dict[str, Any]
SPLIT = ("compute", "optimizer", "wait", "rest")


def measured(case: Case, steps: int, options: dict[str, Any]) -> Result | None:
    """Trains in this process, one of several where a launcher has started them; None but in the first one."""
    import numpy as np

    from pydtconv import distribution, replica
    from pydtconv.profiling import Profiler

    distribution.initialize()
    distribution.set_distribution(distribution.DataParallel(**options))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((case.batch, case.size, case.size, 3), np.float32)
    y = rng.integers(0, case.classes, case.batch)
    model = compiled(case)
    seconds = []
    for _ in range(steps + 2):
        start = time.perf_counter()
        model.train_on_batch(x, y)
        seconds.append(time.perf_counter() - start)
    peak = memory.peak()
    profiled = -(-steps // 2)
    with Profiler(model, steps=profiled, skip=0) as profiler:
        for _ in range(profiled):
            model.train_on_batch(x, y)
    peaks = replica.current().collected(peak, "the memory of all ranks")
    if not replica.current().is_main:
        return None
    return {"seconds": seconds[2:], "MiB": sum(peaks), **split(profiler.profile)}


def split(profile: Any) -> dict[str, float]:
    """Milliseconds of a step's kinds of work."""
    found = dict.fromkeys(SPLIT, 0.0)
    for timing in profile.timings:
        kind = "rest"
        if timing.node == "wait":
            kind = "wait"
        elif timing.direction == "update" or timing.node == "optimizer":
            kind = "optimizer"
        elif timing.index >= 0:
            kind = "compute"
        found[kind] += 1e3 * timing.seconds
    return found


def run(case: Case, ranks: int, threads: int, options: argparse.Namespace) -> Result:
    """One measurement in fresh processes."""
    chosen = {"bucket_size": options.bucket_size, "overlap": not options.blocking, "wire": options.wire}
    given = {name: value for name, value in chosen.items() if value is not None}
    words = ["--one", *case, options.steps, json.dumps(given)]
    launch = [] if ranks == 1 else [launcher(), "-n", str(ranks)]
    return in_own_process("benchmarks.ranks", words, threads, launch)


def launcher() -> str:
    """The mpiexec that belongs to this interpreter, or the first one on the path."""
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    found = shutil.which("mpiexec", path=os.pathsep.join(folders))
    if found is None:
        raise SystemExit("mpiexec: not found; pip install 'pydtconv[mpi]' brings one")
    return found


def row(case: Case, options: argparse.Namespace) -> dict[str, object]:
    cores = options.cores
    shapes = {f"1x{cores}": (1, cores), f"{cores}x1": (cores, 1)}
    results: dict[str, list[Result]] = {side: [] for side in shapes}
    for turn in range(options.rounds):
        for side in list(shapes)[:: -1 if turn % 2 else 1]:
            results[side].append(run(case, *shapes[side], options))
    return {"network": case.network, "images": case.size, "batch": case.batch} | figures(case.batch, results)


def figures(batch: int, results: dict[str, list[Result]]) -> dict[str, object]:
    """The columns of a row; results of both sides, by rounds: first those of the threads, then those of the ranks."""
    steps = {side: [result["seconds"] for result in found] for side, found in results.items()}
    rates = {side: batch / statistics.median(itertools.chain(*rounds)) for side, rounds in steps.items()}
    threads, ranks = results
    rounds = [statistics.median(a) / statistics.median(b) for a, b in zip(*steps.values(), strict=True)]
    found: dict[str, object] = {f"{side} images/s": rate for side, rate in rates.items()}
    found |= {"ratio": rates[ranks] / rates[threads], "lowest": min(rounds), "highest": max(rounds)}
    for side, parts in ((threads, ("compute", "optimizer", "rest")), (ranks, SPLIT)):
        found |= {f"{side} {part} ms": statistics.median(r[part] for r in results[side]) for part in parts}
        found[f"{side} MiB"] = statistics.median(r["MiB"] for r in results[side])
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks", description=__doc__)
    parser.add_argument("--networks", nargs="+", default=NETWORKS, help="names of the zoo")
    parser.add_argument("--size", type=int, default=32, help="rows and columns of an image (default: 32)")
    parser.add_argument("--batch", type=int, help="images of a step of all ranks (default: 64, large images fewer)")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="ranks, threads of one rank")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side (default: 3)")
    parser.add_argument("--steps", type=int, default=20, help="timed steps of a process (default: 20)")
    parser.add_argument("--bucket-size", type=float, help="MiB of a bucket (default: as everywhere)")
    parser.add_argument("--blocking", action="store_true", help="reduce after backward, not during it")
    parser.add_argument("--wire", choices=("float32", "bfloat16"), help="numbers in which gradients travel")
    parser.add_argument("--name", default="ranks", help="of the files in benchmarks/results/")
    options = parser.parse_args()
    if options.cores < 2 or options.rounds < 1:
        parser.error(f"--cores, --rounds: expected 2 or more and 1 or more, got {options.cores} and {options.rounds}")
    return options


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        network, size, batch, steps, given = sys.argv[2:]
        result = measured(Case(network, int(size), int(batch)), int(steps), json.loads(given))
        if result is not None:
            print(json.dumps(result), flush=True)
        return
    options = parse()
    rows = []
    for case in cases(tuple(options.networks), (options.size,), options.batch):
        rows.append(row(case, options))
        print(", ".join(f"{key} {report.cell(value)}" for key, value in rows[-1].items()), flush=True)
    report.print_table("ranks beside threads", rows)
    print(report.write_csv(options.name, rows))
    draw(options.name, rows)


def draw(name: str, rows: list[dict[str, object]]) -> None:
    title = "ranks of one thread, relative to one rank of as many threads"
    print(report.plot_networks(name, title, rows, {"images/s": "ratio"}, "ranks / threads", 1.0, "threads"))


if __name__ == "__main__":
    main()
