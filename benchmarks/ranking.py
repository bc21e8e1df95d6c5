"""The cost model of the convolutions against measurements, and fitted to them: `python -m benchmarks.ranking`.

A grid of layers is measured with every algorithm: those of layers.txt, and random ones of the sizes that networks have.
For each pass it prints what the model's choice costs beyond the best algorithm's time, over the whole grid and in the
worst layers: by the constants of `pydtconv.conv.estimates.COSTS`, by those of `pydtconv tune --calibrate` where there
are some, and by coefficients fitted anew, which are printed in the form of COSTS.  What the model expects to take more
than --near times the best one's time is not measured.  To be run on an idle machine; --keep FILE keeps the
measurements, and takes them from there when it exists.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.conv import layers, our_sides
from pydtconv import config, microkernels
from pydtconv.conv import ConvProblem, algorithms, calibrated
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.estimates import COSTS, Work, seconds
from pydtconv.conv.problem import DIRECTIONS

FEWEST, MOST = 10**7, 4 * 10**9  # operations of a random layer
LONG = 1e-3  # seconds of a pass that counts in full
Times = dict[str, dict[str, dict[str, float]]]  # by layer, pass and algorithm
Costs = Mapping[tuple[str, str], Work]  # by algorithm and pass


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


def measured_names(p: ConvProblem, direction: str, near: float) -> list[str]:
    """What the constants in force, or COSTS, expect to be near the best one; of Fourier's another basis, too."""
    rows = [TABLE[name] for name in algorithms(p, direction)]
    found: dict[str, None] = {}
    for costs in (COSTS, costs_in_force()):
        times = {row.name: seconds(costs[row.family, direction], row.amounts(p, direction)) for row in rows}
        near_ones = [name for name, value in times.items() if value <= near * min(times.values())]
        found |= dict.fromkeys(near_ones)
    found |= {row.name: None for name in list(found) for row in TABLE[TABLE[name].family].others(p, direction, 1)}
    return list(found)


def costs_in_force() -> Costs:
    return {(row, way): calibrated.costs(row, way, "float32") for row, way in COSTS}


def measure(p: ConvProblem, turns: int = 4, near: float = math.inf) -> dict[str, dict[str, float]]:
    """Seconds by pass and algorithm: the best of some turns."""
    random = np.random.default_rng(0)
    x, w, y = (random.standard_normal(shape, dtype="float32") for shape in (p.x_shape, p.w_shape, p.y_shape))
    found: dict[str, dict[str, float]] = {}
    for direction in DIRECTIONS:
        sides = our_sides(p, direction, {"x": x, "w": w, "y": y}, measured_names(p, direction, near))
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


def fitted(problems: dict[str, ConvProblem], times: Times, threads: int) -> Costs:
    """Costs of every algorithm and pass that was measured; what is not saved costs as at the peak or more."""
    found = {}
    peak = 1e9 * threads * microkernels.peak_gflops("float32")
    for algorithm, row in TABLE.items():
        for direction in row.directions:
            rows = [
                (TABLE[a].amounts(problems[name], direction), value)
                for name in problems
                for a, value in times[name][direction].items()
                if TABLE[a].family == algorithm
            ]
            if rows:
                amounts, measured = (np.array(values) for values in zip(*rows, strict=True))
                costs = fit(
                    amounts, measured, 0 if algorithm == "winograd" or row.has_basis or row.products else 1 / peak
                )
                found[algorithm, direction] = Work(*(1e12 * costs))
    return found


def losses(
    problems: dict[str, ConvProblem], times: Times, direction: str, costs: Costs
) -> list[tuple[float, float, float, str, str, str]]:
    """For each layer: chosen / best time, both times, the layer, the chosen and the best algorithm; worst first."""
    found = []
    for name, p in problems.items():
        measured = times[name][direction]
        rows = [TABLE[a] for a in measured]
        estimates = {row.name: seconds(costs[row.family, direction], row.amounts(p, direction)) for row in rows}
        chosen, best = min(estimates, key=estimates.__getitem__), min(measured, key=measured.__getitem__)
        found.append((measured[chosen] / measured[best], measured[chosen], measured[best], name, chosen, best))
    return sorted(found, reverse=True)


def report(problems: dict[str, ConvProblem], times: Times, costs: Costs, worst: int) -> None:
    for direction in DIRECTIONS:
        found = losses(problems, times, direction, costs)
        mean = math.exp(sum(math.log(row[0]) for row in found) / len(found))
        total = sum(row[1] for row in found) / sum(row[2] for row in found)
        above = sum(row[0] > 1.05 for row in found)
        print(
            f"{direction}: chosen / best {mean:.3f} (mean), {total:.3f} (of the time); > 1.05: {above} of {len(found)}"
        )
        for ratio, _, _, name, chosen, best in found[:worst]:
            print(f"    {ratio:.2f}  {name}: {chosen} instead of {best}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranking", description=__doc__)
    parser.add_argument("--threads", type=int, default=config.num_threads())
    parser.add_argument("--layers", type=int, default=160)
    parser.add_argument("--turns", type=int, default=4, help="of each algorithm (default: 4)")
    parser.add_argument("--near", type=float, default=3.0, help="expected times of the best one (default: 3)")
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
            times[name] = measure(p, options.turns, options.near)
    if options.keep:
        options.keep.write_text(json.dumps(times))
    problems = {name: p for name, p in problems.items() if name in times}
    print(f"{len(problems)} layers; costs as they come")
    report(problems, times, COSTS, options.worst)
    if calibrated.in_force() is not None:
        print("costs calibrated on this machine")
        report(problems, times, costs_in_force(), options.worst)
    costs = fitted(problems, times, options.threads)
    print("costs fitted anew")
    report(problems, times, costs, options.worst)
    for (algorithm, direction), cost in costs.items():
        print(f'    ("{algorithm}", "{direction}"): Work({", ".join(f"{value:.3g}" for value in cost)}),')


if __name__ == "__main__":
    main()
