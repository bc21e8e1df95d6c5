"""What it costs to divide other loops of a product among threads: `python -m benchmarks.gemm --ways`.

Each division of the threads among BLIS's loops jc, ic, jr and ir takes turns with the one that `gemm` takes by the
sizes, in one process.  The time ratio is that of medians: above 1, the division is slower.  `python -m
benchmarks.threads --ways` does the same with steps of networks whose convolutions are products (CGT+DG+PM), each
process on one division.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.networks import Case
from benchmarks.timing import medians
from pydtconv import config
from pydtconv.gemm import gemm

Ways = tuple[int, ...]
BY_SIZES = "by the sizes"


def divisions(threads: int, loops: int = 4) -> Iterator[Ways]:
    """All ways to write a number of threads as a product of threads of each loop."""
    if loops == 1:
        yield (threads,)
        return
    for each in range(threads, 0, -1):
        if threads % each == 0:
            yield from ((each, *rest) for rest in divisions(threads // each, loops - 1))


def written(ways: Ways) -> str:
    return "x".join(map(str, ways))


def rows_of(dtype: str, threads: int, shapes: Sequence[tuple[str, int, int, int]], seconds: float) -> list[report.Row]:
    config.set_num_threads(threads)
    rng = np.random.default_rng(0)
    rows: list[report.Row] = []
    for name, m, n, k in shapes:
        a, b, c = (rng.random(shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        sides = {written(ways): functools.partial(gemm, a, b, c, ways=ways) for ways in divisions(threads)}
        times = medians({BY_SIZES: functools.partial(gemm, a, b, c), **sides}, seconds, threads=threads)
        chosen = times[BY_SIZES]
        shape = {"shape": name, "m": m, "n": n, "k": k, "dtype": dtype, "threads": threads}
        rows += [{**shape, "ways": ways, "ms": 1e3 * each, "time ratio": each / chosen} for ways, each in times.items()]
    return rows


def run(
    dtypes: Sequence[str],
    threads: Sequence[int],
    shapes: Sequence[tuple[str, int, int, int]],
    seconds: float,
    file: str,
) -> None:
    rows = [row for dtype in dtypes for number in threads for row in rows_of(dtype, number, shapes, seconds)]
    report.print_table("Threads of loops jc x ic x jr x ir, relative to the division by sizes", rows)
    print(report.write_csv(file, rows))


def networks(
    cases: Sequence[Case], threads: int, rounds: int, run: Callable[[Case, str], dict[str, Any]], file: str
) -> None:
    """Steps of networks with each division of the threads; run: what a process measures, see threads.py."""
    rows: list[report.Row] = []
    for case in cases:
        sides: dict[str, list[float]] = {side: [] for side in (BY_SIZES, *map(written, divisions(threads)))}
        for _ in range(rounds):
            for side, seconds in sides.items():
                seconds.append(run(case, side)["seconds"])
        for side, seconds in sides.items():
            ratios = [mine / usual for mine, usual in zip(seconds, sides[BY_SIZES], strict=True)]
            rows.append({
                "network": case.network, "images": case.size, "batch": case.batch, "threads": threads, "ways": side,
                "ms": 1e3 * statistics.median(seconds), "time ratio": statistics.median(ratios),
                "lowest": min(ratios), "highest": max(ratios),
            })  # fmt: skip
        report.print_table(f"{case}: threads of loops jc x ic x jr x ir", rows[-len(sides) :])
    print(report.write_csv(file, rows))
