"""Fourier transforms beside SciPy's: `python -m benchmarks.fft [--peer scipy]`; pyfftw's too, where it is installed.

Real transforms of float32 arrays, of one axis and of two, in batches that fill half of the second cache and that are
four times as large as it.  Both sides take turns on the same arrays, with the same number of threads.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.timing import Side, medians
from pydtconv import config, fft

LENGTHS = (8, 12, 16, 20, 25, 32, 36, 49, 64, 81, 96, 100, 128, 150, 192, 256)
SQUARES = (8, 12, 16, 24, 32, 48, 64)
CACHE = 2 << 20


def peers(wanted: str | None, x: np.ndarray, axes: tuple[int, ...], threads: int) -> dict[str, Side]:
    """SciPy's transform and pyfftw's, of all axes in question."""
    sides: dict[str, Side] = {}
    if wanted is None:
        return sides
    import scipy.fft

    sides["scipy"] = lambda: scipy.fft.rfftn(x, axes=axes, workers=threads)
    if importlib.util.find_spec("pyfftw"):
        import pyfftw

        plan: Any = pyfftw.builders.rfftn(x, axes=axes, threads=threads)
        sides["pyfftw"] = plan
    return sides


def measure(points: tuple[int, ...], nbytes: int, options: argparse.Namespace) -> dict[str, object]:
    batch = max(1, nbytes // (4 * math.prod(points)))
    x = np.random.default_rng(0).standard_normal((batch, *points), dtype="float32")
    axes = tuple(range(-len(points), 0))
    sides: dict[str, Side] = {"pydtconv": (lambda: fft.rfft(x)) if len(points) == 1 else (lambda: fft.rfft2(x))}
    sides |= peers(options.peer, x, axes, options.threads)
    seconds = medians(sides, options.seconds, threads=options.threads)
    work = 2.5 * x.size * math.log2(math.prod(points))
    row: dict[str, object] = {"points": "x".join(map(str, points)), "batch": batch, "MiB": x.nbytes / 2**20}
    row |= {f"{name} GFLOPS": work / value / 1e9 for name, value in seconds.items()}
    row |= {f"to {name}": seconds[name] / seconds["pydtconv"] for name in seconds if name != "pydtconv"}
    return row


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fft", description=__doc__)
    parser.add_argument("--peer", choices=["scipy"], help="measure SciPy's transforms beside ours")
    parser.add_argument("--threads", type=int, default=config.num_threads())
    parser.add_argument("--seconds", type=float, default=0.3, help="for each size")
    options = parser.parse_args()
    config.set_num_threads(options.threads)
    sizes: list[tuple[int, ...]] = [(n,) for n in LENGTHS] + [(n, n) for n in SQUARES]
    rows = [measure(points, nbytes, options) for points in sizes for nbytes in (CACHE // 2, 4 * CACHE)]
    report.print_table(f"real transforms, float32, {options.threads} threads", rows)
    for name in [key for key in rows[0] if key.startswith("to ")]:
        mean = math.exp(sum(math.log(float(row[name])) for row in rows) / len(rows))  # type: ignore[arg-type]
        print(f"{name}: geometric mean {mean:.2f}")
    print(report.write_csv("fft", rows))


if __name__ == "__main__":
    main()
