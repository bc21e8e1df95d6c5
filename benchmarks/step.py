"""One training step, node by node, beside its floor: `python -m benchmarks.step --model resnet34 --size 32`.

Each part of a step is timed by the hooks of the plan; the median over the steps counts.  GFLOPS are of the direct
method; GB/s of what a part has to read and write.  Its floor is the larger of its multiplications by the method known
that needs the fewest (Winograd's where it can be used, without its transforms) at the FMA peak, and its bytes at the
bandwidth of memory, both measured in this run; a part whose arrays stay in a cache can be below it.  --dtype
mixed_bfloat16 takes the peak of bfloat16's products.  --all runs the four networks at 32x32 and 224x224.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.networks import Case, cases, compiled
from pydtconv import config, microkernels
from pydtconv.conv import VARIANTS
from pydtconv.profiling import Profile, Profiler, Timing, memory_bandwidth

Row = dict[str, object]


@dataclass(frozen=True)
class Machine:
    """What the floors are made of: GFLOPS and GB/s of so many threads."""

    threads: int
    peak: float
    bandwidth: float

    @classmethod
    def measured(cls, threads: int, dtype: str = "float32") -> Machine:
        peak = microkernels.peak_gflops("bfloat16" if dtype == "mixed_bfloat16" else "float32", threads)
        return cls(threads, peak, memory_bandwidth(threads))

    def floor(self, timing: Timing) -> float:
        return timing.floor(self.peak, self.bandwidth)

    def __str__(self) -> str:
        return f"FMA peak {self.peak:.0f} GFLOPS, memory {self.bandwidth:.1f} GB/s, {self.threads} threads"


def profiled(case: Case, steps: int) -> Profiler:
    """Trains some steps on random images."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((case.batch, case.size, case.size, 3), np.float32)
    y = rng.integers(0, case.classes, case.batch)
    model = compiled(case)
    with Profiler(model, steps=steps, skip=1) as profiler:
        for _ in range(steps + 1):
            model.train_on_batch(x, y)
    return profiler


def figures(timings: Sequence[Timing], machine: Machine, whole: float) -> Row:
    """Milliseconds, rates, and floor of some parts together."""
    seconds, flops, moved = (sum(getattr(t, name) for t in timings) for name in ("seconds", "flops", "bytes"))
    floor = sum(map(machine.floor, timings))
    return {
        "ms": 1e3 * seconds,
        "share %": 100 * seconds / whole,
        "GFLOPS": flops / seconds / 1e9 if flops and seconds else None,
        "GB/s": moved / seconds / 1e9 if moved and seconds else None,
        "floor ms": 1e3 * floor,
        "above ms": 1e3 * (seconds - floor),
        "times floor": seconds / floor if floor else None,
    }


def part_rows(profile: Profile, machine: Machine) -> list[Row]:
    """One row a part, the longest first."""
    return [
        {
            **figures([timing], machine, profile.seconds),
            "pass": timing.direction, "operator": timing.kind, "algorithm": timing.algorithm,
            "shape": timing.shape, "node": timing.node, "bytes": timing.bytes, "flops": timing.flops,
            "multiplications": timing.multiplications,
        }
        for timing in sorted(profile.timings, key=lambda timing: -timing.seconds)
    ]  # fmt: skip


def kind_rows(profile: Profile, machine: Machine, *names: str) -> list[Row]:
    """Sums over parts that agree in these fields of Timing; what is the furthest above its floor first."""
    groups: dict[tuple[Any, ...], list[Timing]] = {}
    for timing in profile.timings:
        groups.setdefault(tuple(getattr(timing, name) for name in names), []).append(timing)
    rows = [
        {**figures(timings, machine, profile.seconds), "parts": len(timings), **dict(zip(names, key, strict=True))}
        for key, timings in groups.items()
    ]
    return sorted(rows, key=lambda row: -float(str(row["above ms"])))


def show(case: Case, profile: Profile, machine: Machine, top: int) -> None:
    floor = sum(map(machine.floor, profile.timings))
    print(
        f"\n{case}, batch {case.batch}: {1e3 * profile.seconds:.1f} ms a step, "
        f"{case.batch / profile.seconds:.1f} images/s; floor {1e3 * floor:.1f} ms, {profile.seconds / floor:.2f} times "
        f"that; {machine}"
    )
    parts = [
        {key: value for key, value in row.items() if key not in ("bytes", "flops", "multiplications")}
        for row in part_rows(profile, machine)
    ]
    report.print_table(f"parts, the longest {top}", parts[:top])
    same = kind_rows(profile, machine, "kind", "direction", "algorithm", "shape")
    report.print_table(f"parts of one shape together, the {top} furthest above their floor", same[:top])
    report.print_table("operators and passes", kind_rows(profile, machine, "kind", "direction", "algorithm"))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.step", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--model", help="a network of the zoo")
    which.add_argument("--all", action="store_true", help="the eight networks, each in a process of its own")
    parser.add_argument("--size", type=int, default=32, help="rows and columns of an image (default: 32)")
    parser.add_argument("--batch", type=int, help="images a step; by default 64 small ones, 16 large ones, 8 for VGG")
    parser.add_argument("--variant", choices=list(VARIANTS), help="of the convolutions (default: AUTO)")
    parser.add_argument(
        "--dtype", choices=("float32", "mixed_bfloat16"), default="float32", help="policy of all layers"
    )
    parser.add_argument("--threads", type=int, default=config.num_threads())
    parser.add_argument("--steps", type=int, default=5, help="steps that count (default: 5)")
    parser.add_argument("--top", type=int, default=20, help="rows of the tables (default: 20)")
    parser.add_argument("--trace", metavar="FILE", help="write the time line of the steps here, as Chrome's JSON")
    return parser.parse_args()


def main() -> None:
    options = parse()
    if options.all:
        words = [word for word in sys.argv[1:] if word != "--all"]
        for case in cases(batch=options.batch):
            command = [sys.executable, "-m", "benchmarks.step", "--model", case.network, "--size", str(case.size)]
            subprocess.run([*command, *words], check=True)
        return
    config.set_num_threads(options.threads)
    config.set_dtype_policy(options.dtype)
    if options.variant:
        config.set_conv_variant(options.variant)
    (case,) = cases((options.model,), (options.size,), options.batch)
    machine = Machine.measured(options.threads, options.dtype)
    profiler = profiled(case, options.steps)
    profile = profiler.profile
    show(case, profile, machine, options.top)
    rows = [
        {**row, "peak GFLOPS": machine.peak, "memory GB/s": machine.bandwidth} for row in part_rows(profile, machine)
    ]
    name = f"step_{case.network}_{case.size}" + ("" if options.dtype == "float32" else f"_{options.dtype}")
    print(report.write_csv(name, rows))
    if options.trace:
        print(profiler.write(options.trace))


if __name__ == "__main__":
    main()
