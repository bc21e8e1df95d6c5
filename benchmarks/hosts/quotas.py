"""Parts of cores: each process of several on one core, and in a control group with a quota of the core's time.

So a process is as fast however many others there are.  Needs Linux, root, and the controller "cpu", of either version
of control groups.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType

#: microseconds for which a quota is given: short, since messages of a process that has used it up wait
_PERIOD = 10_000
#: microseconds of the smallest quota that the system takes
_LEAST = 1_000


class Quotas:
    """A context with so many control groups.  part: of a core, for each.  Raises OSError where they cannot be made."""

    def __init__(self, count: int, part: float) -> None:
        self.paths = [_root() / f"pydtconv_{os.getpid()}_{i}" for i in range(count)]
        self.part = part

    def __enter__(self) -> Quotas:
        try:
            self._make()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _make(self) -> None:
        period = max(_PERIOD, int(_LEAST / self.part) + 1)
        quota = int(self.part * period)
        for path in self.paths:
            path.mkdir()
            if (path / "cpu.max").exists():
                (path / "cpu.max").write_text(f"{quota} {period}")
            else:
                (path / "cpu.cfs_period_us").write_text(str(period))
                (path / "cpu.cfs_quota_us").write_text(str(quota))

    def _end(self) -> None:
        for path in self.paths:
            for _ in range(100):  # until the processes are gone
                try:
                    path.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.05)


def place(path: Path, number: int, pid: int) -> None:
    """Puts a process into a group, and on the core that its number has by turns."""
    cores = sorted(os.sched_getaffinity(0))
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {cores[number % len(cores)]})
    (path / "cgroup.procs").write_text(str(pid))


def missing() -> str | None:
    """Why there are no quotas here; None where there are."""
    try:
        with Quotas(1, 0.5):
            return None
    except OSError as error:
        return f"quotas of processor time are not allowed here: {error}"


def _root() -> Path:
    for line in Path("/proc/mounts").read_text().splitlines():
        _, path, kind, options, *_ = line.split()
        control = Path(path) / "cgroup.subtree_control"
        if kind == "cgroup" and "cpu" in options.split(","):
            return Path(path)
        if kind == "cgroup2" and control.exists() and "cpu" in control.read_text().split():
            return Path(path)
    raise OSError("no control groups have the controller cpu")
