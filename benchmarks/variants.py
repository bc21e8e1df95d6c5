"""Training of whole networks with each variant of the convolutions: `python -m benchmarks.variants`.

Each network, image size and variant runs on random images, on each number of threads, in processes of its own that take
turns.  samples/s is of the median over all timed iterations; speed to first: the median of its ratios to the first
variant by rounds, and lowest and highest: the least and the largest of these ratios.  Peak memory is what the process's
resident memory has grown by since a tiny network was trained, which loads libraries and starts threads.  Workspaces are
"ahead" where the plan has placed them (+PM): they share memory with what lives at other times; else each call allocates
its own.  Linux only.  CSV and pictures go to benchmarks/results/; with --keep, a run goes on where another one ended.
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

import numpy as np

from benchmarks import report
from benchmarks.memory import resident
from benchmarks.networks import Case, add_case_arguments, cases, compiled
from benchmarks.processes import Kept, in_own_process
from pydtconv import config
from pydtconv.conv import VARIANTS

_MIB = 1 << 20
Result = dict[str, Any]
Row = dict[str, object]


def measure(case: Case, variant: str, iterations: int) -> Result:
    """Trains in this process; seconds of steps, MiB that were measured and MiB that the plan has predicted."""
    import pydtconv as keras

    keras.config.set_conv_variant(variant)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((case.batch, case.size, case.size, 3), np.float32)
    y = rng.integers(0, case.classes, case.batch)
    compiled(Case("resnet20", 8, 2)).train_on_batch(x[:2, :8, :8].copy(), y[:2] % 10)  # libraries and threads are there
    keras.utils.clear_session()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    model = compiled(case)
    seconds = []
    for _ in range(iterations + 1):
        start = time.perf_counter()
        model.train_on_batch(x, y)
        seconds.append(time.perf_counter() - start)
    return {
        "seconds": seconds[1:],
        "peak MiB": resident("VmHWM") - before,
        "predicted MiB": model.plan(case.batch).peak_bytes / _MIB,
    }


def in_turns(case: Case, threads: int, options: argparse.Namespace, kept: Kept) -> dict[str, list[Result]]:
    """What the processes of each variant measured, round by round."""
    found: dict[str, list[Result]] = {variant: [] for variant in options.variants}
    for turn in range(options.rounds):
        iterations = options.iterations * (turn + 1) // options.rounds - options.iterations * turn // options.rounds
        for variant, results in found.items():
            words = ["--one", *case, variant, iterations]

            def result_of(words: list[Any] = words) -> Result:
                return in_own_process("benchmarks.variants", words, threads)

            result, origin = kept.get(f"{case} {case.batch} {variant} {threads} {iterations} {turn}", result_of)
            results.append(result | {"origin": origin})
    return found


def rows_of(case: Case, threads: int, found: dict[str, list[Result]]) -> list[Row]:
    """A row for each variant; those of the first are compared with."""
    rows: list[Row] = []
    medians = {variant: [statistics.median(each["seconds"]) for each in results] for variant, results in found.items()}
    peaks = {variant: max(each["peak MiB"] for each in results) for variant, results in found.items()}
    first = next(iter(found))
    for variant, results in found.items():
        ratios = [a / b for a, b in zip(medians[first], medians[variant], strict=True)]
        row = VARIANTS[variant]
        rows.append({
            "network": case.network, "size": case.size, "threads": threads, "variant": variant,
            "forward": row.forward or "auto", "backward_data": row.backward_data or "auto",
            "backward_weights": row.backward_weights or "auto", "workspaces": "ahead" if row.persistent else "in calls",
            "batch": case.batch,
            "samples/s": case.batch / statistics.median(second for each in results for second in each["seconds"]),
            "speed to first": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios),
            "peak MiB": peaks[variant], "predicted MiB": results[0]["predicted MiB"],
            "memory to first": peaks[variant] / peaks[first], **results[-1]["origin"],
        })  # fmt: skip
    return rows


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        network, size, batch, variant, iterations = sys.argv[2:]
        print(json.dumps(measure(Case(network, int(size), int(batch)), variant, int(iterations))))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.variants", description=__doc__)
    add_case_arguments(parser)
    names = config.CONV_VARIANTS
    parser.add_argument("--variants", nargs="+", choices=names, default=names, help="the first is compared with")
    parser.add_argument("--iterations", type=int, default=60, help="timed steps of training, of all rounds")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each variant (default: 3)")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument(
        "--threads", nargs="+", type=int, default=sorted({1, 2, cores}), help="default: 1, 2 and as many as there are"
    )
    parser.add_argument("--keep", type=Path, help="a JSON file of what is measured already")
    options = parser.parse_args()
    if not 1 <= options.rounds <= options.iterations:
        parser.error(f"--rounds: expected 1 to {options.iterations} (--iterations), got {options.rounds}")
    chosen, kept = cases(tuple(options.networks), tuple(options.sizes), options.batch), Kept(options.keep)
    rows = []
    for threads in options.threads:
        for case in chosen:
            rows += rows_of(case, threads, in_turns(case, threads, options, kept))
            report.print_table(f"{case}, {threads} threads", rows[-len(options.variants) :])
            sys.stdout.flush()
    print(report.write_csv("variants", rows))
    labels = [f"{case.network} {case.size}, {threads}" for threads in options.threads for case in chosen]
    for column, name in (("speed to first", "throughput"), ("memory to first", "memory")):
        series = {v: [float(str(row[column])) for row in rows if row["variant"] == v] for v in options.variants}
        title = f"{name} of training relative to {options.variants[0]}, by network, images and threads"
        print(report.plot_bars(f"variants_{name}", title, labels, series, f"{name} / {options.variants[0]}", rows=rows))


if __name__ == "__main__":
    main()
