"""Trainings as processes: how they are started, and which of their ranks are alive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.distribution.ranks import LAUNCHER, environment

PROGRAM = Path(__file__).with_name("training.py")


def start(folder: Path, ranks: int, *arguments: Any) -> subprocess.Popen[bytes]:
    """A training in a session of its own, whose output goes to FOLDER/output."""
    for old in folder.glob("pid.*"):
        old.unlink()
    launch = [str(LAUNCHER), "-n", str(ranks)] if ranks > 1 else []
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(
            [*launch, sys.executable, str(PROGRAM), str(folder), *map(str, arguments)],
            env=environment(OMP_WAIT_POLICY="passive"),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def pids(folder: Path) -> list[int]:
    """The ranks' processes, as far as they have said theirs."""
    found = []
    for path in sorted(folder.glob("pid.*")):
        text = path.read_text()
        if text:
            found.append(int(text))
    return found


def send(pid: int, number: int) -> bool:
    """Whether there was a process to send the signal to."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def alive(folder: Path) -> list[int]:
    """The ranks that run, or are stopped; not those that have ended and are waited for by nobody."""
    return [pid for pid in pids(folder) if state(pid) not in ("", "Z", "X")]


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def end(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Ends whatever is left of a training."""
    for pid in [process.pid, *alive(folder)]:
        if process.poll() is None or pid != process.pid:
            send(pid, signal.SIGKILL)
    process.wait()
