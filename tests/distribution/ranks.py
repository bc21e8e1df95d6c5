"""Real ranks: programs of this folder under mpiexec, each with a time-out."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LAUNCHER = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
REASON = next(
    (
        f"needs {name}: pip install 'pydtconv[mpi]'"
        for name, found in (("mpi4py", importlib.util.find_spec("mpi4py")), ("mpiexec", LAUNCHER))
        if not found
    ),
    None,
)
needs_mpi = [pytest.mark.mpi, pytest.mark.skipif(REASON is not None, reason=REASON or "")]


def environment(**more):
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PMI_", "PYDTCONV_STALL"))}
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return kept | threads | {key: str(value) for key, value in more.items()}


def command(ranks, program, *arguments, wrapper=()):
    """The command line that runs a program of this folder (see __main__.py), a file, or `-m` and a module, on ranks."""
    here = () if program.startswith("-") or program.endswith(".py") else ("-m", "tests.distribution")
    python = [*wrapper, sys.executable, *here, program]
    launch = [LAUNCHER, "-n", str(ranks)] if ranks else []
    return [*launch, *python, *map(str, arguments)]


def run(ranks, program, *arguments, timeout=120, wrapper=(), **env):
    """Runs to the end; ranks 0 is without mpiexec.  Fails where it takes longer than the time-out."""
    return subprocess.run(
        command(ranks, program, *arguments, wrapper=wrapper),
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def run_well(ranks, program, *arguments, **options):
    """Runs, and fails with what was printed where the exit status is not 0."""
    done = run(ranks, program, *arguments, **options)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
