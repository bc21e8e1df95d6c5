"""What it costs to divide other loops of a product among threads: `python -m benchmarks.gemm --ways`.

Each division of the threads among BLIS's loops jc, ic, jr and ir takes turns with the one that `gemm` takes by the
sizes, in one process.  The time ratio is that of medians: above 1, the division is slower.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks import report
from benchmarks.timing import medians
from pydtconv import config
from pydtconv.gemm import gemm

Ways = tuple[int, ...]


def divisions(threads: int, loops: int = 4) -> Iterator[Ways]:
    """All ways to write a number of threads as a product of threads of each loop."""
    if loops == 1:
        yield (threads,)
        return
    for each in range(threads, 0, -1):
        if threads % each == 0:
            yield from ((each, *rest) for rest in divisions(threads // each, loops - 1))


def rows_of(dtype: str, threads: int, shapes: Sequence[tuple[str, int, int, int]], seconds: float) -> list[report.Row]:
    config.set_num_threads(threads)
    rng = np.random.default_rng(0)
    rows: list[report.Row] = []
    for name, m, n, k in shapes:
        a, b, c = (rng.random(shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        sides = {"x".join(map(str, ways)): functools.partial(gemm, a, b, c, ways=ways) for ways in divisions(threads)}
        times = medians({"by the sizes": functools.partial(gemm, a, b, c), **sides}, seconds, threads=threads)
        chosen = times["by the sizes"]
        shape = {"shape": name, "m": m, "n": n, "k": k, "dtype": dtype, "threads": threads}
        rows += [{**shape, "ways": ways, "ms": 1e3 * each, "time ratio": each / chosen} for ways, each in times.items()]
    return rows


def run(
    dtypes: Sequence[str], threads: Sequence[int], shapes: Sequence[tuple[str, int, int, int]], seconds: float
) -> None:
    rows = [row for dtype in dtypes for number in threads for row in rows_of(dtype, number, shapes, seconds)]
    report.print_table("Threads of loops jc x ic x jr x ir, beside the division by sizes", rows)
    print(report.write_csv("gemm_ways", rows))
