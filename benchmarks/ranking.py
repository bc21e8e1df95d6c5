"""The cost model of the convolutions against measurements, and fitted to them: `python -m benchmarks.ranking`.

A grid of layers is measured with every algorithm: those of layers.txt, and random ones of the sizes that networks have.
For each pass it prints what the model's choice costs beyond the best algorithm's time, over the whole grid and in the
worst layers, and coefficients fitted anew, in the form of `pydtconv.conv.estimates.COSTS`.  To be run on an idle
machine; --keep FILE keeps the measurements, and takes them from there when it exists.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np

from benchmarks.conv import layers, our_sides
from pydtconv import config, microkernels
from pydtconv.conv import ConvProblem
from pydtconv.conv.estimates import COSTS, Work, seconds
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.conv.table import TABLE

FEWEST, MOST = 10**7, 4 * 10**9  # operations of a random layer
LONG = 1e-3  # seconds of a pass that counts in full
Times = dict[str, dict[str, dict[str, float]]]  # by layer, pass and algorithm


def grid(count: int) -> dict[str, ConvProblem]:
    """Layers of layers.txt and random ones, by name: n, image, channels in and out, kernel, stride."""
    random = np.random.default_rng(7)
    problems = {f"{p.n},{p.ih},{p.ci},{p.co},{p.kh},{p.sh}": p for p in layers().values()}
    channels = (3, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
    while len(problems) < count:
        choices = ((1, 4, 16, 64), (2, 4, 7, 8, 13, 14, 16, 28, 32, 56), channels, channels[2:], (1, 1, 3, 3, 3, 5, 7))
        n, extent, ci, co, kernel = (int(random.choice(values)) for values in choices)
        stride = int(random.choice((1, 1, 2)))
        p = ConvProblem(n, extent, extent, ci, co, kernel, stride, "same")
        if FEWEST < p.flops < MOST and kernel <= 2 * extent:
            problems[f"{n},{extent},{ci},{co},{kernel},{stride}"] = p
    return problems


def measure(p: ConvProblem, turns: int = 4) -> dict[str, dict[str, float]]:
    """Seconds by pass and algorithm: the best of some turns."""
    random = np.random.default_rng(0)
    x, w, y = (random.standard_normal(shape, dtype="float32") for shape in (p.x_shape, p.w_shape, p.y_shape))
    found: dict[str, dict[str, float]] = {}
    for direction in DIRECTIONS:
        sides = our_sides(p, direction, {"x": x, "w": w, "y": y})
        best = dict.fromkeys(sides, math.inf)
        for _ in range(turns):
            for name, side in sides.items():
                side()
                start = time.perf_counter()
                side()
                best[name] = min(best[name], time.perf_counter() - start)
        found[direction] = best
    return found


def fit(amounts: np.ndarray, times: np.ndarray, known: float) -> np.ndarray:
    """Coefficients of 0 or more, the first of them `known` or more.

    Least squares of relative errors; large errors weigh less, and so do short times, which are noisy.
    """
    scale = amounts.max(axis=0)
    rows = amounts / np.where(scale > 0, scale, 1) / times[:, None]
    target = 1 - known * amounts[:, 0] / times
    start = np.minimum(1, times / LONG)
    weights, costs = start, np.zeros(rows.shape[1])
    for _ in range(20):
        used = [i for i in range(rows.shape[1]) if scale[i] > 0]
        solution = np.zeros(0)
        while used:
            solution = np.linalg.lstsq(rows[:, used] * weights[:, None], target * weights, rcond=None)[0]
            if solution.min() >= 0:
                break
            del used[int(solution.argmin())]
        estimates = np.maximum(rows[:, used] @ solution + 1 - target, 1e-3)
        weights = start / np.sqrt(np.abs(np.log(estimates)) + 0.1) / np.maximum(estimates, 0.3)
        costs = np.zeros(rows.shape[1])
        costs[used] = solution / scale[used]
    costs[0] += known
    return costs


def fitted(problems: dict[str, ConvProblem], times: Times, threads: int) -> dict[tuple[str, str], Work]:
    """Costs of every algorithm and pass that was measured; what is not saved costs as at the peak or more."""
    found = {}
    peak = 1e9 * threads * microkernels.peak_gflops("float32")
    for algorithm, row in TABLE.items():
        for direction in row.directions:
            names = [name for name in problems if algorithm in times[name][direction]]
            if names:
                amounts = np.array([row.work(problems[name], direction) for name in names])
                measured = np.array([times[name][direction][algorithm] for name in names])
                costs = fit(amounts, measured, 0 if algorithm == "winograd" else 1 / peak)
                found[algorithm, direction] = Work(*(1e12 * costs))
    return found


def losses(
    problems: dict[str, ConvProblem], times: Times, direction: str, costs: dict[tuple[str, str], Work]
) -> list[tuple[float, float, float, str, str, str]]:
    """For each layer: chosen / best time, both times, the layer, the chosen and the best algorithm; worst first."""
    found = []
    for name, p in problems.items():
        measured = times[name][direction]
        estimates = {a: seconds(costs[a, direction], TABLE[a].work(p, direction)) for a in measured}
        chosen, best = min(estimates, key=estimates.__getitem__), min(measured, key=measured.__getitem__)
        found.append((measured[chosen] / measured[best], measured[chosen], measured[best], name, chosen, best))
    return sorted(found, reverse=True)


def report(problems: dict[str, ConvProblem], times: Times, costs: dict[tuple[str, str], Work], worst: int) -> None:
    for direction in DIRECTIONS:
        found = losses(problems, times, direction, costs)
        mean = math.exp(sum(math.log(row[0]) for row in found) / len(found))
        total = sum(row[1] for row in found) / sum(row[2] for row in found)
        print(f"{direction}: chosen / best {mean:.3f} (mean), {total:.3f} (of the time)")
        for ratio, _, _, name, chosen, best in found[:worst]:
            print(f"    {ratio:.2f}  {name}: {chosen} instead of {best}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranking", description=__doc__)
    parser.add_argument("--threads", type=int, default=config.num_threads())
    parser.add_argument("--layers", type=int, default=160)
    parser.add_argument("--keep", type=Path, help="file of measurements")
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop measuring after this time (with --keep)")
    parser.add_argument("--worst", type=int, default=5, help="layers to be named for each pass")
    options = parser.parse_args()
    config.set_num_threads(options.threads)
    problems = grid(options.layers)
    times: Times = json.loads(options.keep.read_text()) if options.keep and options.keep.exists() else {}
    end = time.perf_counter() + options.seconds
    for name, p in problems.items():
        if name not in times and time.perf_counter() < end:
            times[name] = measure(p)
    if options.keep:
        options.keep.write_text(json.dumps(times))
    problems = {name: p for name, p in problems.items() if name in times}
    print(f"{len(problems)} layers; the costs in force")
    report(problems, times, COSTS, options.worst)
    costs = fitted(problems, times, options.threads)
    print("costs fitted anew")
    report(problems, times, costs, options.worst)
    for (algorithm, direction), cost in costs.items():
        print(f'    ("{algorithm}", "{direction}"): Work({", ".join(f"{value:.3g}" for value in cost)}),')


if __name__ == "__main__":
    main()
