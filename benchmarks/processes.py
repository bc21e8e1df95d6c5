"""A measurement in a process of its own, so that its memory and its threads are nobody else's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks import report


def in_own_process(
    module: str,
    words: Sequence[object],
    threads: int | None = None,
    launch: Sequence[str] = (),
    python: str = sys.executable,
    env: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """The JSON line that `python -m module words` prints last.  threads: of both sides' libraries, None as they choose.

    launch: the beginning of a command line that starts several of them, such as mpiexec's.  python: the interpreter.
    env: more of the environment.  Libraries choose their own kernels: none is forced on them.  Ends the program where
    the process fails.
    """
    env = {key: value for key, value in os.environ.items() if key != "OPENBLAS_CORETYPE"} | dict(env)
    if threads is not None:
        env |= {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    command = [*launch, python, "-m", module, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: status {done.returncode}\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


class Kept:
    """Results by name in a JSON file, where one is given: a long benchmark may be measured in pieces.

    Each result is kept with the origin (`report.origin`) of the run that measured it.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.results: dict[str, Any] = json.loads(path.read_text()) if path and path.exists() else {}
        if any(not isinstance(found, dict) or "origin" not in found for found in self.results.values()):
            raise SystemExit(f"{path}: expected results that are kept with their origin")

    def get(self, name: str, measure: Callable[[], Any]) -> tuple[Any, dict[str, str]]:
        """What the file has, else what is measured now; and its origin."""
        if name not in self.results:
            self.results[name] = {"result": measure(), "origin": report.origin()}
            if self.path:
                new = self.path.with_name(f"{self.path.name}.new")  # a run may end at any time
                new.write_text(json.dumps(self.results))
                new.replace(self.path)
        return self.results[name]["result"], self.results[name]["origin"]
