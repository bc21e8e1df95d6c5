"""Training on several threads beside one: `python -m benchmarks.threads`.

Every network is trained in fresh processes that take turns, on each number of threads.  The ratio is of the best
process's median step on each; lowest and highest: the ratio within a round.  Parts of a step are named with what they
take longer than if they scaled perfectly, the worst first.  A CSV file and a picture go to benchmarks/results/.
--model tells instead what more cores would do, on paper (see threads_model.py), --ways what GEMM's loops cost that
threads divide (see gemm_ways.py).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import gemm_ways, report, threads_model
from benchmarks.networks import Case, add_case_arguments, cases
from benchmarks.processes import Kept, in_own_process
from pydtconv import config, gemm

Row = dict[str, object]
Parts = dict[str, float]  # seconds of operators, passes and algorithms


def measure(case: Case, steps: int, ways: str = "") -> dict[str, Any]:
    """Trains some steps in this process: seconds of the median step, and of its parts.  ways: see gemm_ways.py."""
    from benchmarks.step import profiled

    if ways:
        config.set_conv_variant("CGT+DG+PM")
        gemm.set_ways(None if ways == gemm_ways.BY_SIZES else tuple(map(int, ways.split("x"))))  # type: ignore[arg-type]
    profile = profiled(case, steps).profile
    parts: Parts = {}
    for timing in profile.timings:
        name = " ".join(filter(None, (timing.kind, timing.direction, timing.algorithm)))
        parts[name] = parts.get(name, 0.0) + timing.seconds
    return {"seconds": profile.seconds, "parts": parts}


def in_turns(case: Case, threads: list[int], rounds: int, steps: int) -> list[list[dict[str, Any]]]:
    """What processes on each number of threads measured."""
    found: list[list[dict[str, Any]]] = [[] for _ in threads]
    for _ in range(rounds):
        for results, number in zip(found, threads, strict=True):
            results.append(in_own_process("benchmarks.threads", ["--one", *case, steps], number))
    return found


def compared(case: Case, threads: list[int], measured: list[list[dict[str, Any]]]) -> tuple[Row, list[Row]]:
    """Images/s on each number of threads, and the parts that scale the worst from the first to the last."""
    found = dict(zip(threads, measured, strict=True))
    best = {number: min(result["seconds"] for result in results) for number, results in found.items()}
    first, last = threads[0], threads[-1]
    row: Row = {"network": case.network, "images": case.size, "batch": case.batch}
    row |= {f"images/s, {number}": case.batch / best[number] for number in threads}
    row["ratio"] = best[first] / best[last]
    rounds = [a["seconds"] / b["seconds"] for a, b in zip(found[first], found[last], strict=True)]
    row |= {"lowest": min(rounds), "highest": max(rounds)}
    return row, scaling(*(fastest_parts(found[number]) for number in (first, last)), last / first, best[last])


def fastest_parts(results: list[dict[str, Any]]) -> Parts:
    names = [name for name in results[0]["parts"] if all(name in result["parts"] for result in results)]
    return {name: min(result["parts"][name] for result in results) for name in names}


def scaling(few: Parts, many: Parts, factor: float, step: float) -> list[Row]:
    """Parts by the share of a step that they take longer than `factor` times as many threads ought to."""
    rows = [
        {
            "part": name,
            "ratio": few[name] / many[name],
            "ms": 1e3 * many[name],
            "lost, % of the step": 100 * (many[name] - few[name] / factor) / step,
        }
        for name in many
        if name in few and many[name] > 0
    ]
    return sorted(rows, key=lambda row: -float(str(row["lost, % of the step"])))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    add_case_arguments(parser)
    parser.add_argument("--threads", nargs="+", type=int, help="default: 1, 2 and all, or 2 8 32 64 with --model")
    parser.add_argument("--ways", action="store_true", help="what GEMM's loops cost, on the last number of threads")
    parser.add_argument("--model", action="store_true", help="measure one thread, and say what more cores would do")
    parser.add_argument("--memory", type=float, default=300, help="with --model: GB/s of all cores (default: 300)")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each number of threads (default: 3)")
    parser.add_argument("--steps", type=int, default=20, help="timed steps of a process (default: 20)")
    parser.add_argument("--top", type=int, default=5, help="parts that are named (default: 5)")
    parser.add_argument("--keep", type=Path, help="file of measurements, which are taken from there when it has them")
    parser.add_argument("--name", help="of the files in benchmarks/results/ (default: threads, or with _ways, _model)")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    options.threads = options.threads or ([2, 8, 32, 64] if options.model else sorted({1, 2, cores}))
    return options


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        network, size, batch, steps, *ways = sys.argv[2:]
        print(json.dumps(measure(Case(network, int(size), int(batch)), int(steps), *ways)))
        return
    options = parse()
    if options.model:
        chosen = cases(tuple(options.networks), tuple(options.sizes), options.batch)
        threads_model.run(chosen, options.threads, options.memory, options.steps, options.name or "threads_model")
        return
    if options.ways:
        chosen, threads = cases(tuple(options.networks), tuple(options.sizes), options.batch), options.threads[-1]

        def run(case: Case, ways: str) -> dict[str, Any]:
            return in_own_process("benchmarks.threads", ["--one", *case, options.steps, ways], threads)

        gemm_ways.networks(chosen, threads, options.rounds, run, options.name or "threads_ways")
        return
    rows, kept = [], Kept(options.keep)
    for case in cases(tuple(options.networks), tuple(options.sizes), options.batch):
        measured, origin = kept.get(str(case), partial(in_turns, case, options.threads, options.rounds, options.steps))
        row, parts = compared(case, options.threads, measured)
        rows.append(row | origin)
        report.print_table(f"{case}, batch {case.batch}: {float(str(row['ratio'])):.2f} times", parts[: options.top])
        sys.stdout.flush()
    report.print_table(f"training on {options.threads} threads", rows)
    print(report.write_csv(options.name or "threads", rows))
    title, columns = f"speed over {options.threads[0]} thread", {f"{options.threads[-1]} threads": "ratio"}
    print(report.plot_networks(options.name or "threads", title, rows, columns, "times"))


if __name__ == "__main__":
    main()
