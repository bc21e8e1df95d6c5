"""The cost model's active constants: those of a calibration of this machine, else those of estimates.py.

A calibration (calibration.py, `pydtconv tune --calibrate`) belongs to one kind of CPU, build level of the library,
micro-kernel, number of threads and dtype.  It is kept in calibration.json in `own_cache()`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from pydtconv import config
from pydtconv._ext import runtime, ukr
from pydtconv.conv import estimates
from pydtconv.conv.estimates import FITTED_THREADS, Work
from pydtconv.conv.matmul_precision import kernel_in_force
from pydtconv.files.measurements import KeptFigures
from pydtconv.support.machine import cpu_kind

#: raised when what `work_of_...` counts changes: older calibrations are then of no use
MODEL = 2
FIGURES = KeptFigures("calibration.json", "pydtconv calibrations of the cost model")
#: dtypes that have products, and calibrations
DTYPES = ("float32", "float64", "bfloat16")
#: operations and bytes per second of a core of the machine that COSTS were fitted on, in operators that are no
#: convolutions (`python -m benchmarks.predicted`); seconds of a call
FLOPS, BYTES, START = 6e10, 1.8e10, 8e-6
#: what figures may be: operations and bytes per second of all threads, seconds of a call, and times those of COSTS
FLOPS_RANGE, BYTES_RANGE, START_RANGE, COSTS_RANGE = (1e8, 1e15), (1e8, 1e14), (0.0, 1e-2), (1e-3, 1e3)


class Machine(NamedTuple):
    """What all threads do together: floating-point operations and bytes per second, and seconds that a call takes."""

    flops: float
    bytes: float
    start: float


class Calibration(NamedTuple):
    """What belongs to one number of threads and one dtype.

    costs: of each algorithm and pass that was measured.  usual: how many times those of COSTS they are in the median,
    for the others.
    """

    machine: Machine
    usual: float
    costs: Mapping[tuple[str, str], Work]


def in_force(dtype: str = "float32") -> Calibration | None:
    """The calibration for the threads now set; None where there is none."""
    return _read(*state(dtype))


def state(dtype: str) -> tuple[str, int, int, int]:
    """What decides which calibration is active, to be a part of the keys of what is remembered."""
    return dtype, ukr.current(dtype), config.num_threads(), FIGURES.changes()


def forget() -> None:
    """Reads the file anew at the next choice."""
    FIGURES.forget()


def costs(family: str, direction: str, dtype: str) -> Work:
    """Picoseconds of each unit of work with the threads now set."""
    found = in_force(dtype)
    if found is None:
        return times(known(family, direction, dtype), FITTED_THREADS / config.num_threads())
    return found.costs.get((family, direction)) or times(known(family, direction, dtype), found.usual)


def known(family: str, direction: str, dtype: str) -> Work:
    """Those of the machine that the model was made on, with the active micro-kernel: a calibration moves them."""
    kernel = kernel_in_force(dtype) if dtype == "bfloat16" else ""
    return estimates.costs(family, direction, dtype, kernel)


def times(each: Work, factor: float) -> Work:
    return Work(*(factor * cost for cost in each))


def machine(dtype: str = "float32", threads: int | None = None) -> Machine:
    """Of the threads now set; of another number of them, and of dtypes that are not multiplied, as it is known."""
    threads = config.num_threads() if threads is None else threads
    found = in_force(dtype if dtype in DTYPES else "float32") if threads == config.num_threads() else None
    return Machine(FLOPS * threads, BYTES * threads, START) if found is None else found.machine


def note(dtype: str, found: Calibration) -> None:
    """Keeps a calibration and makes it active; with a warning where the file cannot be written.

    Raises ValueError for figures that cannot be those of a machine, before anything is changed.
    """
    check(dtype, found)
    head = _head(dtype)
    figures = {f"{head}machine {name}": value for name, value in found.machine._asdict().items()}
    figures[f"{head}usual"] = found.usual
    for (family, direction), each in found.costs.items():
        figures |= {f"{head}{family} {direction} {name}": value for name, value in each._asdict().items()}
    FIGURES.add(figures)


def check(dtype: str, found: Calibration) -> None:
    """Raises ValueError naming the figure that cannot be one of a machine, or that is missing."""
    values = (*found.machine, found.usual)
    ranges = (FLOPS_RANGE, BYTES_RANGE, START_RANGE, COSTS_RANGE)
    for name, value, (least, most) in zip((*Machine._fields, "usual"), values, ranges, strict=True):
        if not least <= value <= most:
            raise ValueError(f"calibration: {name}: expected {least:g} to {most:g}, got {value:g}")
    for (family, direction), each in found.costs.items():
        usual = known(family, direction, dtype)
        for name, value, other in zip(Work._fields, each, usual, strict=True):
            least, most = (other * times for times in COSTS_RANGE)
            if not least <= value <= most:
                what = f"{family} {direction} {name}"
                raise ValueError(f"calibration: {what}: expected {least:g} to {most:g}, got {value:g}")


@lru_cache(maxsize=64)
def _read(dtype: str, kernel: int, threads: int, changes: int) -> Calibration | None:
    """From the file; None, with a warning, where it holds what cannot be."""
    head = _head(dtype)
    found = {name[len(head) :]: value for name, value in FIGURES.all().items() if name.startswith(head)}
    if not found:
        return None
    try:
        machine = Machine(*(found.pop(f"machine {name}") for name in Machine._fields))
        usual = found.pop("usual")
        keys = {tuple(name.rsplit(" ", 2)[:2]) for name in found}
        costs = {
            (family, direction): Work(*(found[f"{family} {direction} {name}"] for name in Work._fields))
            for family, direction in keys
        }
        calibration = Calibration(machine, usual, costs)
        check(dtype, calibration)
    except (KeyError, ValueError) as error:
        text = f"expected {error}" if isinstance(error, KeyError) else str(error)
        warnings.warn(
            f"{FIGURES.path} is ignored, run `pydtconv tune --calibrate` again: {text}", RuntimeWarning, stacklevel=2
        )
        return None
    return calibration


def _head(dtype: str) -> str:
    cpu, threads = _cpu(), config.num_threads()
    return f"{cpu} | {runtime.level()} | {kernel_in_force(dtype)} | {threads} threads | {dtype} | model {MODEL} | "


@lru_cache(maxsize=1)
def _cpu() -> str:
    return cpu_kind()


def lines() -> list[str]:
    """For people: for each dtype which constants are active, and figures of them."""
    found = []
    for dtype in DTYPES:
        known, of = in_force(dtype), machine(dtype)
        origin = "calibrated" if known else "not calibrated (pydtconv tune --calibrate)"
        rates = f"{of.flops / 1e9:.0f} GFLOPS, {of.bytes / 1e9:.1f} GB/s, {1e6 * of.start:.1f} us a call"
        found.append(f"{dtype}: {origin}, {config.num_threads()} threads: {rates}")
        products = {} if known is None else known.costs
        forward = [
            f"{family} {1e3 / each.products:.0f}"
            for (family, direction), each in sorted(products.items())
            if direction == "forward" and each.products and not family.startswith("fft")
        ]
        if forward:
            found.append(f"  products in forward, GFLOPS: {', '.join(forward)}")
    return found
