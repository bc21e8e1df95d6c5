"""Shows what pydtconv found on this machine: CPU, micro-kernels and their speed, threads, BLIS, MPI, OpenMP, GPUs.

The speeds are measured now, within a second or two; other work on the machine makes them smaller.
Under mpiexec it shows the ranks too, with their hosts, cores and threads, and which way their gradients go; --mesh
tells which of them share images, and how fast halos travel between them.
The exit status is 1 where something should be mended; the last lines then say what.
"""

from __future__ import annotations

import importlib.util
import math
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

from pydtconv import caches, config, microkernels
from pydtconv._ext import available_levels, cpu, runtime
from pydtconv._version import __version__
from pydtconv.cli import gpu
from pydtconv.cli.parser import Parser
from pydtconv.cli.processes import mesh_of
from pydtconv.support.launcher import launched
from pydtconv.support.machine import cpu_kind

SUMMARY = "show CPU, micro-kernels and their GFLOPS, threads, BLIS, MPI and data sets"

Line = tuple[str, str]


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--quick", action="store_true", help="measure nothing")
    parser.add_argument(
        "--mesh",
        metavar="AXIS=N,...",
        type=mesh_of,
        help="check this mesh, under mpiexec: who shares images with whom, and how fast halos travel",
    )


def run(args: Any) -> int:
    """Prints a report; 1 where something should be mended."""
    lines, problems, is_main = _ranks(args.mesh, not args.quick)
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
        from pydtconv.distribution.mpi.launch import world

        request = world().comm.Ibarrier()
        while not request.Test():
            time.sleep(0.02)


def _ranks(mesh: dict[str, int] | None, measure: bool) -> tuple[list[Line], list[str], bool]:
    """Under mpiexec: lines of all ranks, what should be mended of them, and whether this is the one that prints."""
    from pydtconv.distribution.mpi.launch import LaunchError, world

    size, rank = launched()
    if size == 1:
        told = "" if mesh is None else ",".join(f"{name}={extent}" for name, extent in mesh.items())
        wanted = 1 if mesh is None else math.prod(mesh.values())
        return [], [f"--mesh {told}: expected mpiexec -n {wanted}, got 1 process"] if wanted > 1 else [], True
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
    more: list[Line] = []
    if mesh is not None:
        from pydtconv.distribution.spatial_parallel import report as meshes

        more, wrong = meshes.lines(here, mesh, measure)
        problems += wrong
    return [*ranks.lines(here, found), ("gradients", way), *more], problems, here.rank == 0


def report(measure: bool = True) -> Iterator[Line]:
    """The lines of the report, as (label, text)."""
    yield "pydtconv", f"{__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    yield "CPU", f"{cpu_kind()}, {len(usable_cores())} cores for this process"
    yield "features", " ".join(sorted(cpu.features())) or "none that kernels ask for"
    yield "library", f"{runtime.level()} (usable: {', '.join(available_levels())})"
    yield "threads", f"{config.num_threads()} ({_threads_from()})"
    yield "caches", _caches()
    yield "blocks", ", ".join(f"{dtype}: {_blocks(dtype)}" for dtype in ("float32", "float64"))
    yield "memory", _memory_nodes()
    yield "waits", _waits()
    for dtype in microkernels.DTYPES:
        yield from _micro_kernels(dtype, measure)
    yield from _cost_model()
    yield "BLIS", _blis()
    own = [] if runtime.spin_seconds() is None else ["the library's own team"]
    yield "OpenMP", ", ".join([*own, *openmp_runtimes()]) or "none"
    yield "MPI", _mpi()
    yield from gpu.report(measure)
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
    for dtype in microkernels.DTYPES:
        for kernel in microkernels.available(dtype):
            if "self-test" in kernel.reason:
                yield f"micro-kernel {kernel.name} ({dtype}): {kernel.reason}"


def _threads_from() -> str:
    named = config.threads_of_environment()
    return f"from {named[0]}" if named else "one per core; PYDTCONV_NUM_THREADS changes it"


def _caches() -> str:
    found = ", ".join(f"{name} {size // 1024} KiB" for name, size in caches.sizes().items())
    origin = "from PYDTCONV_CACHES" if os.environ.get("PYDTCONV_CACHES") else "PYDTCONV_CACHES=48K,2M changes them"
    return f"{found} ({origin})"


def _blocks(dtype: str) -> str:
    """What matrix products cut for these caches and the active micro-kernel."""
    kernel = microkernels.selected(dtype)
    return f"MC {kernel.mc} KC {kernel.kc} NC {kernel.nc}"


def _memory_nodes(root: Path = Path("/sys/devices/system/node")) -> str:
    """Where memory lies: a page belongs to the node of the thread that first writes it."""
    rows = []
    for node in sorted(root.glob("node[0-9]*"), key=lambda path: int(path.name[4:])):
        cores = (node / "cpulist").read_text().strip()
        total = re.search(r"MemTotal:\s+(\d+) kB", (node / "meminfo").read_text())
        rows.append(f"node {node.name[4:]}: cores {cores}" + (f", {int(total[1]) >> 20} GiB" if total else ""))
    if len(rows) < 2:
        return "one node: all cores reach all of it alike"
    return f"{len(rows)} nodes, {'; '.join(rows)}; a process for each is the fastest (mpiexec --map-by numa)"


def _waits() -> str:
    """How long waiting threads spin before they sleep."""
    seconds = runtime.spin_seconds()
    if seconds is None:
        return "as the OpenMP library has it"
    if os.environ.get("OMP_WAIT_POLICY"):
        return f"threads spin for {1e6 * seconds:.0f} us, then sleep (OMP_WAIT_POLICY)"
    return (
        f"threads spin for {1e6 * seconds:.0f} us, then sleep; at once where one that they wait for has lost its core"
    )


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


def _cost_model() -> Iterator[Line]:
    """Which constants choose algorithms, for each dtype."""
    from pydtconv.conv import calibrated

    for i, line in enumerate(calibrated.lines()):
        yield "" if i else "cost model", line


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
