"""Trainings that are disturbed at random moments, and started again until they are done."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.soak import processes

#: seconds within which a training must have ended after what ends it, and by itself
_END, _WHOLE = 60, 600
#: disturbances of one training at most, after which it comes to its end
_MOST = 8
_DISK = 2 << 20
_LATE = "had ended before"
KILLS = ("kill", "kill of the launcher")


class Room:
    """findings: what was wrong, in words.  only: names of what happens (default: all)."""

    def __init__(self, folder: Path, seed: int, ranks: list[int], only: tuple[str, ...] | None = None) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.ranks = ranks
        self.findings: list[str] = []
        self.outcomes: Counter[tuple[str, int, str]] = Counter()
        self.trainings = self.resumed = 0
        self._expected: dict[int, Path] = {}
        self._seconds: dict[int, float] = {}
        self._mounted = False
        self._shared = shared_files()
        self._events: dict[str, Callable[[subprocess.Popen[bytes], Path, int], str]] = {
            "kill": self._kill,
            "kill of the launcher": self._kill_launcher,
            "term": lambda process, folder, ranks: self._signal(process, signal.SIGTERM),
            "interrupt": lambda process, folder, ranks: self._signal(process, signal.SIGINT),
            "stop and continue": self._stop,
            "full disk": self._fill,
        }
        self._names = [name for name in self._events if only is None or name in only]

    @property
    def count(self) -> int:
        return sum(self.outcomes.values())

    @property
    def kills(self) -> int:
        """Trainings that were killed in their midst."""
        rows = self.outcomes.items()
        return sum(count for (name, _, outcome), count in rows if name in KILLS and outcome != _LATE)

    def prepare(self) -> None:
        """The undisturbed trainings, whose bits the others must have."""
        for ranks in self.ranks:
            folder = self.folder / f"whole{ranks}"
            (folder / "disk").mkdir(parents=True)
            begun = time.monotonic()
            process = processes.start(folder, ranks, "epoch")
            if process.wait(_WHOLE):
                raise RuntimeError(f"the undisturbed training fails:\n{(folder / 'output').read_text()}")
            self._seconds[ranks] = time.monotonic() - begun
            self._expected[ranks] = folder

    def disturb(self) -> None:
        """One training, from its start to its end."""
        ranks = self.ranks[self.trainings % len(self.ranks)]
        self.trainings += 1
        folder = self.folder / f"training{self.trainings}"
        (folder / "disk").mkdir(parents=True)
        self._mount(folder / "disk")
        save_freq = self.random.choice(["epoch", "1", "7"])
        most = self.random.randint(1, _MOST)
        try:
            for attempt in range(most + 1):
                if self._attempt(folder, ranks, save_freq, disturbed=attempt < most):
                    break
            self._compare(folder, ranks, f"training {self.trainings} ({ranks} ranks, save_freq={save_freq})")
        finally:
            self.clean()
        if not self.findings:
            shutil.rmtree(folder)

    def _attempt(self, folder: Path, ranks: int, save_freq: str, disturbed: bool) -> bool:
        """Whether the training has reached its end."""
        process = processes.start(folder, ranks, save_freq)
        try:
            status = self._run(process, folder, ranks, disturbed)
        except subprocess.TimeoutExpired:
            self._found(folder, "a training does not end")
            status = None
        finally:
            processes.end(process, folder)
        return status == 0

    def _run(self, process: subprocess.Popen[bytes], folder: Path, ranks: int, disturbed: bool) -> int:
        name = ""
        if disturbed:
            names = [name for name in self._names if ranks > 1 or name != "kill of the launcher"]
            name = self.random.choice(names)
            delay = self.random.uniform(0, self._seconds[ranks])
            try:
                process.wait(delay)
            except subprocess.TimeoutExpired:
                went_on = self._events[name](process, folder, ranks)
            else:
                went_on = _LATE
        else:
            went_on = "undisturbed"
        ends = name in (*KILLS, "term", "interrupt") and went_on == ""
        status = process.wait(_END if ends else _WHOLE)
        if name:
            self.outcomes[name, ranks, went_on or _told(status)] += 1
        if ends and status == 0 and not (folder / "result.0.npz").exists():
            self._found(folder, f"exit status 0 after {name}, without a result")
        if not ends and status != 0:
            self._found(folder, f"exit status {status} after {name or 'nothing'} ({went_on})")
        self._look_for_leftovers(folder, name)
        return status

    # --- what happens ----------------------------------------------------------------------------------------------
    def _kill(self, process: subprocess.Popen[bytes], folder: Path, ranks: int) -> str:
        found = processes.alive(folder) if ranks > 1 else [process.pid]
        processes.send(self.random.choice(found or [process.pid]), signal.SIGKILL)
        return ""

    def _kill_launcher(self, process: subprocess.Popen[bytes], folder: Path, ranks: int) -> str:
        processes.send(process.pid, signal.SIGKILL)
        return ""

    def _signal(self, process: subprocess.Popen[bytes], number: int) -> str:
        processes.send(process.pid, number)
        return ""

    def _stop(self, process: subprocess.Popen[bytes], folder: Path, ranks: int) -> str:
        found = processes.alive(folder) or [process.pid]
        pid = self.random.choice(found)
        processes.send(pid, signal.SIGSTOP)
        time.sleep(self.random.uniform(0.05, 2.5))
        processes.send(pid, signal.SIGCONT)
        return "went on"

    def _fill(self, process: subprocess.Popen[bytes], folder: Path, ranks: int) -> str:
        if not self._mounted:
            return "no disk can be made here"
        filler = folder / "disk" / "filler"
        with filler.open("wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while file.write(bytes(4096)):
                    pass
            time.sleep(self.random.uniform(0.05, 2.0))
        filler.unlink()
        return "went on"

    # --- afterwards ------------------------------------------------------------------------------------------------
    def _compare(self, folder: Path, ranks: int, what: str) -> None:
        for rank in range(ranks):
            path = folder / f"result.{rank}.npz"
            if not path.exists():
                self._found(folder, f"{what}: no result of rank {rank}")
                continue
            with np.load(self._expected[ranks] / path.name) as a, np.load(path) as b:
                other = [name for name in a.files if name not in b.files or a[name].tobytes() != b[name].tobytes()]
            if other:
                self._found(folder, f"{what}: other bits on rank {rank} in {', '.join(other)}")
        self.resumed += (folder / "output").read_text().count("going on with")

    def _look_for_leftovers(self, folder: Path, name: str) -> None:
        """Processes and shared memory that outlive a training."""
        end = time.monotonic() + 20
        while processes.alive(folder) and time.monotonic() < end:
            time.sleep(0.1)
        if processes.alive(folder):
            self._found(folder, f"processes {processes.alive(folder)} are left 20 s after {name}")
        new = shared_files() - self._shared
        if new:
            time.sleep(2)  # the steady processes', and those of other programs, have a name for moments only
        more = [name for name in new & shared_files() if name.startswith("pydtconv")]
        if more:
            self._found(folder, f"/dev/shm holds {', '.join(more)} after {name}")
            self._shared |= set(more)

    def _found(self, folder: Path, text: str) -> None:
        tail = (folder / "output").read_text(errors="replace")[-2000:]
        self.findings.append(f"{text}\n{tail}")
        print(f"FOUND: {text}", flush=True)

    # --- the disk --------------------------------------------------------------------------------------------------
    def _mount(self, folder: Path) -> None:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "none", str(folder)]
        self._mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0

    def clean(self) -> None:
        if self._mounted:
            disk = self.folder / f"training{self.trainings}" / "disk"
            subprocess.run(["umount", "--lazy", str(disk)], check=False)
            self._mounted = False

    def table(self) -> str:
        lines = [f"{'what':22} {'ranks':>5}  {'count':>5}  what happened"]
        for (name, ranks, outcome), count in sorted(self.outcomes.items()):
            lines.append(f"{name:22} {ranks:5}  {count:5}  {outcome}")
        return "\n".join(lines)


def _told(status: int) -> str:
    """An exit status, of the process or of its launcher."""
    if status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"exit status {status}" if status else "reached its end"


def shared_files() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}
