"""Steps of whole networks by precision, beside our own float32: `python -m benchmarks.precisions`.

Each network trains in float32, in mixed_bfloat16, and in float32 with products of
`config.set_float32_matmul_precision("medium")`: one process, steps in turns, so that all have the same moments of a
machine that others use, too.  ratio: float32's median by this one's; fastest: the same of the shortest steps.  peak: as
the plan predicts it, without the process itself.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import report
from benchmarks.networks import Case, add_case_arguments, batch_of, cases, compiled

#: dtype policy and precision of float32's products, by name
PRECISIONS = {
    "float32": ("float32", "highest"),
    "mixed_bfloat16": ("mixed_bfloat16", "highest"),
    "high": ("float32", "high"),
    "medium": ("float32", "medium"),
}
USUAL = ("float32", "mixed_bfloat16", "medium")
Row = dict[str, object]


def step_of(case: Case, name: str) -> tuple[Callable[[], Any], float]:
    """A function that trains a batch in this precision, after two steps to warm up, and the predicted peak in MiB."""
    from pydtconv import config

    policy, precision = PRECISIONS[name]

    def active() -> None:
        config.set_dtype_policy(policy)
        config.set_float32_matmul_precision(precision)

    active()
    model = compiled(case)
    x, y = batch_of(case, model)

    def step() -> None:
        active()
        model.train_on_batch(x, y)

    for _ in range(2):
        step()
    return step, model.plan(batch_size=case.batch).peak_bytes / 2**20


def measured(case: Case, names: tuple[str, ...], seconds: float) -> Iterator[Row]:
    """A row for each precision; steps in turns for so many seconds, three of each at least."""
    from pydtconv import config

    before = config.dtype_policy(), config.float32_matmul_precision()
    try:
        steps = {name: step_of(case, name) for name in names}
        times: dict[str, list[float]] = {name: [] for name in names}
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times[names[0]]) < 3:
            for name, (step, _) in steps.items():
                start = time.perf_counter()
                step()
                times[name].append(time.perf_counter() - start)
    finally:
        config.set_dtype_policy(before[0])
        config.set_float32_matmul_precision(before[1])
    base = times["float32"]
    for name, mine in times.items():
        yield {
            "network": case.network,
            "pixels": case.size,
            "batch": case.batch,
            "precision": name,
            "steps": len(mine),
            "images/s": case.batch / statistics.median(mine),
            "ratio": statistics.median(base) / statistics.median(mine),
            "fastest": min(base) / min(mine),
            "peak MiB": steps[name][1],
            "of float32": steps[name][1] / steps["float32"][1],
        }


def means(rows: list[Row]) -> list[Row]:
    """Geometric means of all networks, a row for each precision."""
    found: list[Row] = []
    for name in dict.fromkeys(row["precision"] for row in rows):
        mine = [row for row in rows if row["precision"] == name]
        each = {key: [float(str(row[key])) for row in mine] for key in ("ratio", "fastest", "of float32")}
        found.append({"precision": name, **{key: statistics.geometric_mean(of) for key, of in each.items()}})
    return found


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.precisions", description=__doc__)
    add_case_arguments(parser)
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=USUAL, help="beside float32")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the steps of a network (default: 30)")
    parser.add_argument("--name", default="precisions", help="of the CSV file (default: precisions)")
    options = parser.parse_args(words)
    names = tuple(dict.fromkeys(("float32", *options.precisions)))
    rows: list[Row] = []
    for case in cases(tuple(options.networks), tuple(options.sizes), options.batch):
        rows += measured(case, names, options.seconds)
    report.print_table("Steps by precision", rows)
    report.print_table("Geometric means", means(rows))
    print(report.write_csv(options.name, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
