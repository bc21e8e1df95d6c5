"""Strassen's algorithm beside the classic product: `python -m benchmarks.gemm --algorithms classic strassen`.

All take turns in one process; the gain is the ratio of medians to the first one's: above 1, it is faster.  The error is
the norm of the difference from a product in float64, relative to that one's norm.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from benchmarks import report
from benchmarks.timing import medians
from pydtconv import config
from pydtconv.gemm import gemm

#: levels of each
ALGORITHMS = {"classic": 0, "strassen": 1, "strassen2": 2}
#: m, n, k: squares; products of dense layers and pointwise convolutions, and of gradients of their filters
SHAPES = [
    *[(f"square {n}", n, n, n) for n in (1024, 1536, 2048, 3072, 4096)],
    ("dense 4096x1024x1024", 4096, 1024, 1024),
    ("1x1 512-512 28x28", 12544, 512, 512),
    ("1x1 728-728 19x19", 11552, 728, 728),
    ("1x1 1024-2048 7x7", 3136, 2048, 1024),
    ("dense 768-3072 tokens", 3152, 3072, 768),
    ("dw 1x1 728-728", 728, 728, 11552),
]


def rows_of(names: Sequence[str], dtype: str, threads: int, shapes: Sequence, seconds: float) -> list[report.Row]:
    config.set_num_threads(threads)
    rng = np.random.default_rng(0)
    rows: list[report.Row] = []
    for shape, m, n, k in shapes:
        a, b = (rng.standard_normal(each).astype(dtype) for each in ((m, k), (k, n)))
        c = np.empty((m, n), dtype)
        sides = {name: functools.partial(gemm, a, b, c, strassen=ALGORITHMS[name]) for name in names}
        times = medians(sides, seconds, threads=threads)
        want = a[:64].astype(np.float64) @ b
        for name, each in times.items():
            sides[name]()
            error = f"{np.linalg.norm(c[:64] - want) / np.linalg.norm(want):.1e}"
            rows.append({
                "shape": shape, "m": m, "n": n, "k": k, "dtype": dtype, "threads": threads, "algorithm": name,
                "ms": 1e3 * each, "GFLOPS": 2e-9 * m * n * k / each, "gain": times[names[0]] / each, "error": error,
            })  # fmt: skip
    return rows


def run(
    names: Sequence[str], dtypes: Sequence[str], threads: Sequence[int], shapes: Sequence, seconds: float, file: str
) -> None:
    rows = [row for dtype in dtypes for each in threads for row in rows_of(names, dtype, each, shapes, seconds)]
    report.print_table("Products; GFLOPS are those of the classic product's operations", rows)
    print(report.write_csv(file, rows))
