"""Resident memory of this process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def resident(field: str) -> float:
    """VmRSS (now) or VmHWM (the peak) in MiB, from Linux's /proc."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise KeyError(field)


def peak() -> float:
    """The most that this program has had resident, in MiB.

    Not getrusage where Linux tells better: its figure begins with what the process was before it became this program.
    """
    if _STATUS.exists():
        return resident("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
