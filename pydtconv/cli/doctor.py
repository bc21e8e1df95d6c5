"""Shows what pydtconv found on this machine: CPU, micro-kernels and their speed, threads, BLIS, MPI, OpenMP, data sets.

The speeds are measured now, within a second or two; other work on the machine makes them smaller.
Under mpiexec it shows the ranks too, with their hosts, cores and threads, and which way their gradients go.
The exit status is 1 where something should be mended; the last lines then say what.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import numpy as np

from pydtconv import config, microkernels
from pydtconv._ext import available_levels, cpu, runtime
from pydtconv._version import __version__
from pydtconv.cli.parser import Parser
from pydtconv.distribution.launch import launched
from pydtconv.utils.machine import cpu_name

SUMMARY = "show CPU, micro-kernels and their GFLOPS, threads, BLIS, MPI and data sets"

Line = tuple[str, str]


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--quick", action="store_true", help="measure nothing")


def run(args: Any) -> int:
    """Prints a report; 1 where something should be mended."""
    lines, problems, is_main = _ranks()
    if not is_main:
        _rest(lines)
        return 0
    for label, text in [*report(measure=not args.quick), *lines]:
        print(f"{label:<14}{text}", flush=True)
    problems += find_problems()
    for problem in problems:
        print(f"to mend       {problem}")
    _rest(lines)
    return 1 if problems else 0


def _rest(lines: list[Line]) -> None:
    """Lets the ranks that have nothing to do sleep until the measurements of the first one are over."""
    if lines:
        from pydtconv.distribution.launch import world

        request = world().comm.Ibarrier()
        while not request.Test():
            time.sleep(0.02)


def _ranks() -> tuple[list[Line], list[str], bool]:
    """Under mpiexec: lines of all ranks, what should be mended of them, and whether this is the one that prints."""
    from pydtconv.distribution.launch import LaunchError, world

    size, rank = launched()
    if size == 1:
        return [], [], True
    from pydtconv import distribution
    from pydtconv.distribution import report as ranks

    try:
        distribution.initialize()
    except LaunchError as error:
        return [], [str(error)], rank == 0
    here = world()
    found = ranks.placements(here, config.num_threads())
    way, problem = ranks.way_of_gradients(here)
    problems = [*ranks.problems(found), *([problem] if problem else [])]
    return [*ranks.lines(here, found), ("gradients", way)], problems, here.rank == 0


def report(measure: bool = True) -> Iterator[Line]:
    """The lines of the report, as (label, text)."""
    yield "pydtconv", f"{__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    yield "CPU", f"{cpu_name()}, {len(usable_cores())} cores for this process"
    yield "features", " ".join(sorted(cpu.features())) or "none that kernels ask for"
    yield "library", f"{runtime.level()} (usable: {', '.join(available_levels())})"
    yield "threads", f"{config.num_threads()} ({_threads_from()})"
    for dtype in ("float32", "float64"):
        yield from _micro_kernels(dtype, measure)
    yield "BLIS", _blis()
    yield "OpenMP", ", ".join(openmp_runtimes()) or "none"
    yield "MPI", _mpi()
    yield from _data()


def usable_cores() -> set[int]:
    """The cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return affinity(0) if affinity else set(range(os.cpu_count() or 1))


def openmp_runtimes() -> list[str]:
    """The OpenMP libraries loaded in this process; empty where the system does not tell."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return []
    return sorted(set(re.findall(r"/\S*lib(?:gomp|i?omp\d*)[-.]\S*so\S*", maps)))


def find_problems() -> Iterator[str]:
    """What should be mended, one line each."""
    if len(openmp_runtimes()) > 1:
        yield f"{len(openmp_runtimes())} OpenMP runtimes in one process compete for the cores"
    if launched()[0] == 1 and config.num_threads() > len(usable_cores()):
        yield f"{config.num_threads()} threads share {len(usable_cores())} cores: set PYDTCONV_NUM_THREADS"
    if runtime.level() != available_levels()[0]:
        yield f"the library's build {runtime.level()} is forced, {available_levels()[0]} would be faster"
    for dtype in ("float32", "float64"):
        for kernel in microkernels.available(dtype):
            if "self-test" in kernel.reason:
                yield f"micro-kernel {kernel.name} ({dtype}): {kernel.reason}"


def _threads_from() -> str:
    for name in ("PYDTCONV_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name):
            return f"from {name}"
    return "one per core; PYDTCONV_NUM_THREADS changes it"


def _micro_kernels(dtype: str, measure: bool) -> Iterator[Line]:
    chosen = microkernels.selected(dtype)
    peak = microkernels.peak_gflops(dtype) if measure else 0.0
    if measure:
        yield "peak", f"{dtype}: {peak:.1f} GFLOPS per core (multiply-adds in registers)"
    for kernel in microkernels.available(dtype):
        if kernel.usable and measure:
            rate = microkernels.measure(kernel.name, dtype)
            speed = f"{rate:6.1f} GFLOPS, {rate / peak:4.0%} of the peak"
        else:
            speed = kernel.reason
        mark = "in use" if kernel.name == chosen.name else ""
        label = "micro-kernel" if kernel.name == chosen.name else ""
        yield label, f"{dtype}  {kernel.name:<28} {kernel.mr:>2} x {kernel.nr:<2}  {speed:<32} {mark}".rstrip()


def _blis() -> str:
    path = microkernels.blis_library()
    if path is None:
        return "not found: pip install blis"
    try:
        return f"PyPI package blis {installed_version('blis')}, {path}"
    except PackageNotFoundError:
        return str(path)


def _mpi() -> str:
    paths = (None, str(Path(sys.executable).parent))
    launcher = next(
        filter(None, (shutil.which(name, path=path) for name in ("mpiexec", "mpirun") for path in paths)), None
    )
    package = importlib.util.find_spec("mpi4py")
    if launcher and package:
        return f"{launcher}, mpi4py {installed_version('mpi4py')}"
    lacking = [name for name, found in (("mpiexec", launcher), ("mpi4py", package)) if not found]
    return f"not found: {' and '.join(lacking)} (only wanted for several processes)"


def _data() -> Iterator[Line]:
    from pydtconv import datasets
    from pydtconv.datasets import source

    yield "data", "digits: in the package"
    for name in datasets.__all__:
        alternatives = getattr(getattr(datasets, name), "FILES", None)
        if alternatives is None:
            continue
        files = source.find(alternatives)
        yield "", f"{name}: {os.path.commonpath(files) if files else 'not here, would be downloaded'}"
