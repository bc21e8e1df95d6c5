"""Calibrates the cost model on this machine: some seconds of measurements, to which its constants are fitted.

A few small problems of the kinds that networks have are run by every algorithm of every pass, with the threads now set.
One problem follows the other before an algorithm comes again, so that arrays have left the second cache, as within a
step.  The shortest of some rounds counts, as other programs only make a run longer; of algorithms that multiply
float32 as bfloat16 the median does: AMX waits for the caches and is slowed down most by what else runs, and these
algorithms are only to be taken where they are the faster ones at a usual moment.

The constants of an algorithm and pass keep their ratios as far as measurements allow: least squares of relative errors
with a weight on the known ratios (ridge regression: A. Hoerl, R. Kennard, 1970), each within bounds.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from pydtconv import config, dtypes, microkernels
from pydtconv.conv import calibrated, estimates
from pydtconv.conv.algorithms import TABLE
from pydtconv.conv.bound_passes import bind, run, scratch
from pydtconv.conv.calibrated import Calibration, Machine
from pydtconv.conv.estimates import Work
from pydtconv.conv.matmul_precision import FAST, kernel_in_force
from pydtconv.conv.problem import DIRECTIONS, ConvProblem
from pydtconv.conv.selection import workspace_bytes

#: n, image, channels in and out, kernel, stride: of some milliseconds each
PROBLEMS = (
    (8, 32, 64, 64, 3, 1),
    (16, 16, 128, 128, 3, 1),
    (16, 8, 256, 256, 3, 1),
    (16, 4, 512, 512, 3, 1),
    (8, 32, 128, 32, 3, 1),
    (8, 32, 64, 128, 3, 2),
    (16, 32, 256, 64, 1, 1),
    (32, 8, 512, 256, 1, 1),
    (8, 32, 64, 256, 1, 1),
    (32, 32, 3, 64, 3, 1),
    (4, 112, 3, 32, 7, 2),
    (8, 16, 64, 64, 5, 1),
    (4, 32, 32, 32, 7, 1),
    (128, 1, 512, 512, 1, 1),
)
DEPTHWISE = ((8, 32, 128, 3, 1), (8, 32, 128, 3, 2), (16, 14, 256, 5, 1))
#: rounds at most and at least
ROUNDS, FEWEST = 9, 4
#: what a run is expected to take, times the best one's of its pass, to be run at all; and did take, to be run again
EXPECTED, HOPELESS = 8.0, 2.5
#: seconds that a dtype takes by default
SECONDS = 5.0
#: how much the known ratios of an algorithm's constants weigh, and how far they may move
RIDGE, BOUNDS = 1.0, (0.2, 5.0)
#: how far (logarithms) algorithms lie apart from one machine to another, those that need AMX further; and how far a
#: single time may be wrong
APART, APART_OF_AMX, NOISE = 0.15, 1.0, 0.3
#: the shortest and the median run of a calibration may be so far apart, and the model's errors may be so large
STEADY, FITS = 4.0, 2.5
#: shares of the peak that products reach at least on an idle machine; AMX waits for the caches
IDLE = {"float32": 0.25, "float64": 0.25, "bfloat16": 0.05}
#: bytes of an array whose copy is timed, and pixels and channels of a product
COPIED, PRODUCT = 32 << 20, 512

Key = tuple[int, str, str]  # a problem, a pass, a row of the table
Times = dict[Key, list[float]]
Progress = Callable[[int, int], None]


def problems(dtype: str) -> list[ConvProblem]:
    """What is measured."""
    usual = [ConvProblem(n, e, e, ci, co, k, s, "same", dtype=dtype) for n, e, ci, co, k, s in PROBLEMS]
    deep = [ConvProblem(n, e, e, c, c, k, s, "same", groups=c, dtype=dtype) for n, e, c, k, s in DEPTHWISE]
    return usual + deep


def calibrate(dtype: str = "float32", seconds: float = SECONDS, progress: Progress | None = None) -> Calibration:
    """Measures, with the threads now set, keeps the constants and makes them active.

    seconds: about so many; three rounds at least are run.  progress(done, of) is called before each round.
    Raises ValueError, and changes nothing, where what was measured cannot be: the machine was too busy.
    """
    given = problems(dtype)
    times = measure(given, seconds, progress)
    found = Calibration(measure_machine(dtype), *fitted(given, times))
    calibrated.note(dtype, found)
    return found


def measure(given: list[ConvProblem], seconds: float, progress: Progress | None = None) -> Times:
    """Seconds of all rounds, by problem, pass and algorithm; without those that are far behind from the beginning."""
    some = np.random.default_rng(0).standard_normal(1 << 16).astype(given[0].real)
    calls: dict[Key, Callable[..., int]] = {}
    nbytes = 0
    for i, p in enumerate(given):
        images = dtypes.to_bits(some) if p.dtype == dtypes.BFLOAT16 else some
        read = {"x": np.resize(images, p.x_shape), "w": np.resize(some, p.w_shape), "y": np.resize(images, p.y_shape)}
        for direction, written in zip(DIRECTIONS, ("y", "x", "w"), strict=True):
            arrays: dict[str, Any] = read | {written: np.zeros_like(read[written])}
            for name in _rows_of(p, direction):
                calls[i, direction, name] = bind(p, direction, name, **arrays)
                nbytes = max(nbytes, workspace_bytes(p, direction, name))
    workspace = scratch(nbytes)
    order = _in_turns(calls)
    times: Times = {key: [] for key in calls}
    first: dict[Key, float] = {}
    best: dict[tuple[int, str], float] = {}
    end = time.perf_counter() + seconds
    for turn in range(ROUNDS + 1):
        if turn > FEWEST and time.perf_counter() > end:
            break
        if progress is not None:
            progress(turn, ROUNDS + 1)
        for key in order:
            if turn and first[key] > HOPELESS * best[key[:2]]:
                continue
            start = time.perf_counter()
            run(calls[key], workspace)
            took = time.perf_counter() - start
            if turn:  # the first round touches the workspace and wakes the threads
                times[key].append(took)
            else:
                first[key], best[key[:2]] = took, min(took, best.get(key[:2], math.inf))
    return {key: each for key, each in times.items() if each}


def _in_turns(keys: Iterable[Key]) -> list[Key]:
    """Another problem and another algorithm each time, so that what disturbs the machine meets a few of each."""
    of_problem: dict[int, list[Key]] = {}
    for key in sorted(keys):
        of_problem.setdefault(key[0], []).append(key)
    most = max(map(len, of_problem.values()))
    turned = {i: mine[i % len(mine) :] + mine[: i % len(mine)] for i, mine in of_problem.items()}
    return [mine[turn] for turn in range(most) for mine in turned.values() if turn < len(mine)]


def _rows_of(p: ConvProblem, direction: str) -> list[str]:
    """What can do it and is not expected to take far longer than another; those of other settings included."""
    fast = kernel_in_force("bfloat16") == FAST
    rows = [row for row in TABLE.values() if row.calibrates and row.reason(p, direction) is None]
    rows = [row for row in rows if fast or row.products is None]
    expected = {
        row.name: estimates.seconds(calibrated.known(row.family, direction, p.dtype), row.amounts(p, direction))
        for row in (row.of(p, direction) for row in rows)
    }
    return [name for name, seconds in expected.items() if seconds <= EXPECTED * min(expected.values())]


def _of_rounds(name: str, each: list[float]) -> float:
    return min(each) if TABLE[name].products is None else statistics.median(each)


def fitted(given: list[ConvProblem], times: Times) -> tuple[float, dict[tuple[str, str], Work]]:
    """How many times the known costs all are in the median, and those of each algorithm and pass.

    Raises ValueError where the times are not to be trusted.
    """
    _check_steady(times)
    groups: dict[tuple[str, str], list[tuple[Work, float]]] = {}
    for (i, direction, name), each in times.items():
        row = TABLE[name]
        amounts = row.amounts(given[i], direction)
        groups.setdefault((row.family, direction), []).append((amounts, _of_rounds(name, each)))
    known = {key: calibrated.known(*key, given[0].dtype) for key in groups}
    logs = {key: _logarithms(rows, known[key], " ".join(key)) for key, rows in groups.items()}
    usual = statistics.median(each for mine in logs.values() for each in mine)
    costs = {
        key: fit(rows, known[key], " ".join(key), _scale(logs[key], usual, key[0])) for key, rows in groups.items()
    }
    return math.exp(usual), costs


def _check_steady(times: Times) -> None:
    ratios = [statistics.median(each) / min(each) for each in times.values() if len(each) >= FEWEST]
    apart = statistics.median(ratios) if ratios else 1.0
    if not apart <= STEADY:
        raise ValueError(
            f"calibration: expected runs that take at most {STEADY:g} times the shortest, got {apart:.1f} times: other "
            "programs run, try again later"
        )


def _logarithms(rows: list[tuple[Work, float]], known: Work, what: str) -> list[float]:
    """Of how many times the known costs each row took.  Raises ValueError, which names `what`, where none can be."""
    for _, took in rows:
        if not (math.isfinite(took) and took > 0):
            raise ValueError(f"calibration: {what}: expected seconds above 0, got {took}")
    return [math.log(took / estimates.seconds(known, work)) for work, took in rows]


def _scale(logs: list[float], usual: float, family: str) -> float:
    """How many times the known costs an algorithm takes: its own median, drawn to that of all where it is unsure."""
    apart = APART if TABLE[family].products is None else APART_OF_AMX
    own, unsure = statistics.median(logs), (statistics.pvariance(logs) + NOISE**2) / len(logs)
    return math.exp(usual + (own - usual) * apart**2 / (apart**2 + unsure))


def fit(rows: list[tuple[Work, float]], known: Work, what: str, scale: float) -> Work:
    """Costs near `scale` times the known ones: see the head of this file.

    Raises ValueError, which names `what`, where no costs come near the measured times.
    """
    prior = scale * np.array(known)
    used = [i for i, each in enumerate(prior) if each > 0]
    shares = np.array([[work[i] * prior[i] * 1e-12 / took for i in used] for work, took in rows])
    factors, free = np.ones(len(used)), list(range(len(used)))
    while free:  # those that meet a bound stay there
        fixed = [i for i in range(len(used)) if i not in free]
        target = 1 - shares[:, fixed] @ factors[fixed]
        weight = math.sqrt(RIDGE * len(rows)) * np.eye(len(free))
        system = np.vstack([shares[:, free], weight]), np.concatenate([target, weight.sum(axis=1)])
        factors[free] = np.linalg.lstsq(*system, rcond=None)[0]
        beyond = [i for i in free if not BOUNDS[0] <= factors[i] <= BOUNDS[1]]
        if not beyond:
            break
        factors = np.clip(factors, *BOUNDS)
        free = [i for i in free if i not in beyond]
    error = math.exp(statistics.median(abs(math.log(each)) for each in shares @ factors))
    if not error <= FITS:
        raise ValueError(
            f"calibration: {what}: expected times within {FITS:g} times the model's, got {error:.1f} times: other "
            "programs run, try again later"
        )
    costs = np.zeros(len(known))
    costs[used] = prior[used] * factors
    return Work(*(float(each) for each in costs))


def measure_machine(dtype: str, seconds: float = 0.15) -> Machine:
    """The rates of products and of copies with all threads, and the time of a call that has next to nothing to do.

    Raises ValueError where products are so far below the cores' peak that other programs must have them.
    """
    p = ConvProblem(PRODUCT, 1, 1, PRODUCT, PRODUCT, 1, dtype=dtype)
    tiny = ConvProblem(1, 2, 2, 8, 8, 1, dtype=dtype)
    threads = config.num_threads()
    parts = [np.ones((2, COPIED // threads), np.uint8) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        copy = _best(lambda: list(pool.map(lambda part: np.copyto(part[0], part[1]), parts)), seconds)
    product, call = (_best(_pass_of(each), seconds) for each in (p, tiny))
    peak = 1e9 * microkernels.peak_gflops(dtype, threads)
    least = IDLE[dtype] * peak
    if p.flops / product < least:
        raise ValueError(
            f"calibration: {dtype}: expected products at {least / 1e9:.0f} GFLOPS or more, {IDLE[dtype]:.0%} of the "
            f"peak, got {p.flops / product / 1e9:.0f}: other programs run, try again later"
        )
    return Machine(p.flops / product, 2 * COPIED / copy, call)


def _pass_of(p: ConvProblem) -> Callable[[], object]:
    stored = "uint16" if p.dtype == dtypes.BFLOAT16 else p.dtype
    x, w, y = np.zeros(p.x_shape, stored), np.zeros(p.w_shape, p.real), np.zeros(p.y_shape, stored)
    call, space = bind(p, "forward", "direct", x, w, y), scratch(workspace_bytes(p, "forward", "direct"))
    return lambda: run(call, space)


def _best(work: Callable[[], object], seconds: float) -> float:
    """The shortest time of calls for so many seconds, of one at least; one more comes before."""
    work()
    best, end = math.inf, time.perf_counter() + seconds
    while best == math.inf or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best
