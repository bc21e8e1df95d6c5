"""Long signals and images with long filters beside SciPy: `python -m benchmarks.overlap [--peer scipy]`.

Full convolutions of one float32 array, by every method; "auto" is what a caller gets.  SciPy's sides are oaconvolve,
fftconvolve and, of few taps, convolve(method="direct"), the fastest of which counts.  The floor is the larger of the
arithmetic of auto's blocks over the peak of the processor, and of the arrays over the bandwidth of memory.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import time
from collections.abc import Collection, Mapping
from math import prod
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.timing import Side
from pydtconv import config, microkernels
from pydtconv.conv import overlap
from pydtconv.conv.overlap_blocks import Problem, choose
from pydtconv.profiling import memory_bandwidth

SIGNALS, TAPS = [1 << power for power in range(12, 26, 2)], (3, 31, 127, 1023, 16383)
IMAGES, WINDOWS = [1 << power for power in range(6, 13)], (3, 7, 15, 31, 127)
METHODS = ("overlap_discard", "overlap_add", "parts")
#: products of SciPy's direct method, of images a thirtieth; nanoseconds of a method of ours; beyond, they are left out
DIRECT, LONG = 3e8, 1e9
#: a side that takes so many times as long as SciPy's fastest in its first turn takes no other
SLOWER, TURNS = 3, 3
PAUSE = 0.002  # until threads that wait for work sleep


def in_turns(sides: Mapping[str, Side], rivals: Collection[str], seconds: float) -> dict[str, float]:
    """Median seconds of a call of each side; SLOWER is over the fastest of the rivals.

    What is called first makes caches and plans, and is not counted, unless it takes long.
    """
    times: dict[str, list[float]] = {name: [] for name in sides}

    def turn(name: str, warm: bool) -> None:
        time.sleep(PAUSE)
        for counts in (False, True) if warm else (True,):
            start = time.perf_counter()
            sides[name]()
            if counts:
                times[name].append(time.perf_counter() - start)

    for name in sides:
        turn(name, False)
        if times[name][0] < seconds / 4:
            times[name].clear()
            turn(name, True)
    best = min(times[name][0] for name in rivals)
    quick = [name for name, values in times.items() if name == "auto" or values[0] < SLOWER * best]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(len(times[name]) for name in quick) < TURNS:
        for name in quick:
            turn(name, times[name][0] < seconds / 20)
    return {name: statistics.median(values) for name, values in times.items()}


def peers(a: np.ndarray, b: np.ndarray, threads: int) -> dict[str, Side]:
    import scipy.fft
    import scipy.signal

    def side(function: Any, **options: Any) -> Side:
        def run() -> object:
            with scipy.fft.set_workers(threads):
                return function(a, b, **options)

        return run

    found = {"oaconvolve": side(scipy.signal.oaconvolve), "fftconvolve": side(scipy.signal.fftconvolve)}
    if a.size * b.size < DIRECT / (1 if a.ndim == 1 else 30):
        found["direct convolve"] = side(scipy.signal.convolve, method="direct")
    return found


def expected_ns(a: np.ndarray, b: np.ndarray, method: str, threads: int) -> float:
    (n, m), start = (((1,) * (2 - of.ndim) + of.shape) for of in (a, b)), (0, 0)
    stop = (n[0] + m[0] - 1, n[1] + m[1] - 1)
    problem = Problem((n[0], n[1]), (m[0], m[1]), start, stop, 1, a.itemsize, threads)
    return choose(problem, method, "auto", None).ns / threads


def floor(a: np.ndarray, b: np.ndarray, work: overlap.Work, peak: float, bandwidth: float) -> float:
    """Seconds that no implementation of these blocks beats."""
    n = prod(work.blocks.points)
    results = prod(i + j - 1 for i, j in zip(a.shape, b.shape, strict=True))
    transforms = work.work_groups * (10 * n * math.log2(n) + 6 * n) + 5 * n * math.log2(n) if n else 0
    operations = transforms or 2.0 * results * b.size
    return max(operations / peak, a.itemsize * (a.size + b.size + results) / bandwidth)


def measure(
    shape: tuple[int, ...], taps: tuple[int, ...], options: argparse.Namespace, peak: float, bandwidth: float
) -> dict[str, object]:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(size, dtype="float32") for size in (shape, taps))
    sides: dict[str, Side] = {"auto": lambda: overlap.convolve(a, b)}
    work = overlap.work(a, b)
    for method in METHODS if options.methods else ():
        if expected_ns(a, b, method, options.threads) < LONG:
            sides[method] = lambda method=method: overlap.convolve(a, b, method=method)  # type: ignore[misc]
    others = peers(a, b, options.threads) if options.peer else {}
    seconds = in_turns(sides | others, others or ("auto",), options.seconds)
    row: dict[str, object] = {"samples": a.size, "axes": a.ndim, "taps": "x".join(map(str, taps))}
    row["blocks"] = "direct" if not any(work.blocks.points) else work.blocks.method
    row["floor ms"] = 1e3 * floor(a, b, work, peak, bandwidth)
    for name in ("auto", *METHODS, "oaconvolve", "fftconvolve", "direct convolve"):
        row[f"{name} ms"] = 1e3 * seconds[name] if name in seconds else None
    row["of floor"] = 1e-3 * row["floor ms"] / seconds["auto"]  # type: ignore[operator]
    if others:
        best = min(seconds[name] for name in others)
        row["to scipy"] = best / seconds["auto"]
        row["least of methods"] = min((best / seconds[name] for name in METHODS if name in seconds), default=None)
    return row


def problems(largest: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    found: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for n in SIGNALS:
        found += [((n,), (m,)) for m in sorted({*TAPS, n // 2}) if m <= n // 2]
    for n in IMAGES:
        found += [((n, n), (m, m)) for m in sorted({*WINDOWS, n // 2}) if m <= n // 2]
    return [(shape, taps) for shape, taps in found if prod(shape) <= largest]


def picture(rows: list[dict[str, object]]) -> None:
    """Bars of SciPy's fastest time by ours, over signal and filter."""
    labels = [f"{row['samples']} * {row['taps']}" for row in rows]
    series = {"to scipy's fastest": [float(str(row["to scipy"])) for row in rows]}
    print(report.plot_bars("overlap", "convolution of signals and images, float32", labels, series, "times as fast"))


def summary(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Geometric mean and least of SciPy's fastest time by ours, of signals and of images."""
    found: list[dict[str, object]] = []
    for axes, low, high in itertools.product((1, 2), (1 << 12, 1 << 16), (1 << 14, math.inf)):
        some = [
            float(str(row["to scipy"]))
            for row in rows
            if row["axes"] == axes and low <= int(str(row["samples"])) <= high
        ]
        if some and (low < 1 << 16) == (high < math.inf):
            mean = math.exp(sum(map(math.log, some)) / len(some))
            found.append({"axes": axes, "samples": f"{low} to {high}", "geometric mean": mean, "least": min(some)})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overlap", description=__doc__)
    parser.add_argument("--peer", choices=["scipy"], help="measure SciPy beside ours")
    parser.add_argument("--threads", type=int, default=config.num_threads())
    parser.add_argument("--seconds", type=float, default=0.3, help="for each problem, at least")
    parser.add_argument("--largest", type=int, default=1 << 24, help="samples or pixels")
    parser.add_argument("--methods", action="store_true", help="measure each method beside auto")
    options = parser.parse_args()
    config.set_num_threads(options.threads)
    peak = 1e9 * microkernels.peak_gflops("float32") * options.threads
    bandwidth = 1e9 * memory_bandwidth(options.threads)
    rows = []
    for shape, taps in problems(options.largest):
        rows.append(measure(shape, taps, options, peak, bandwidth))
        print(" ".join(f"{key} {report.cell(value)}" for key, value in rows[-1].items()), flush=True)
    report.print_table(f"convolution, float32, {options.threads} threads", rows)
    if options.peer:
        report.print_table("SciPy's fastest time by ours", summary(rows))
        picture(rows)
    print(report.write_csv("overlap", rows))


if __name__ == "__main__":
    main()
