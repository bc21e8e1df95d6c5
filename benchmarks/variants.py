"""Training of whole networks with each variant of the convolutions: `python -m benchmarks.variants`.

Each network, image size and variant runs in a process of its own on random images; samples/s is the median over the
iterations after the first, peak memory what the process's resident memory has grown by since a tiny network
was trained, which loads libraries and starts threads.  Linux only.
CSV and pictures go to benchmarks/results/, each figure also relative to BASE.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks import report
from benchmarks.memory import resident
from benchmarks.networks import Case, add_case_arguments, cases, compiled
from benchmarks.processes import in_own_process

VARIANTS = ("BASE", "RDX", "CGT", "CGT+PM", "CGT+DG", "AUTO")
_MIB = 1 << 20


def measure(case: Case, variant: str, iterations: int) -> dict[str, float]:
    """Trains in this process; samples/s, MiB that were measured and MiB that the plan has predicted."""
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
        "samples/s": case.batch / statistics.median(seconds[1:]),
        "peak MiB": resident("VmHWM") - before,
        "predicted MiB": model.plan(case.batch).peak_bytes / _MIB,
    }


def rows_of(options: argparse.Namespace) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for case in cases(tuple(options.networks), tuple(options.sizes), options.batch):
        base: dict[str, float] = {}
        for variant in options.variants:
            found = in_own_process("benchmarks.variants", ["--one", *case, variant, options.iterations])
            base = base or found
            rows.append({
                "network": case.network, "size": case.size, "variant": variant, "batch": case.batch, **found,
                "speed to first": found["samples/s"] / base["samples/s"],
                "memory to first": found["peak MiB"] / base["peak MiB"],
            })  # fmt: skip
            print(f"{case} {variant}: {found['samples/s']:.1f} samples/s, {found['peak MiB']:.0f} MiB", flush=True)
    return rows


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        network, size, batch, variant, iterations = sys.argv[2:]
        print(json.dumps(measure(Case(network, int(size), int(batch)), variant, int(iterations))))
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.variants", description=__doc__)
    add_case_arguments(parser)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS, help="the first is compared with")
    parser.add_argument("--iterations", type=int, default=60, help="timed steps of training")
    options = parser.parse_args()
    rows = rows_of(options)
    report.print_table("training of whole networks", rows)
    print(report.write_csv("variants", rows))
    labels = [f"{case.network} {case.size}" for case in cases(tuple(options.networks), tuple(options.sizes))]
    for column, name in (("speed to first", "throughput"), ("memory to first", "memory")):
        series = {v: [float(str(row[column])) for row in rows if row["variant"] == v] for v in options.variants}
        title = f"{name} of training relative to {options.variants[0]}"
        print(report.plot_bars(f"variants_{name}", title, labels, series, f"{name} / {options.variants[0]}"))


if __name__ == "__main__":
    main()
