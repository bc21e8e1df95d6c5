"""What the machine is called, and where pydtconv keeps what it has found out about it."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def cpu_name() -> str:
    """The CPU as it calls itself."""
    return _field("model name") or platform.processor() or platform.machine()


def cpu_kind() -> str:
    """Name, family and model of the CPU: those of one kind run the same kernels equally fast."""
    numbers = [f"{name} {value}" for name in ("cpu family", "model") if (value := _field(name))]
    return ", ".join([cpu_name(), *numbers])


def own_cache() -> Path:
    """The folder of what pydtconv keeps: `$PYDTCONV_CACHE`, else pydtconv/ in `$XDG_CACHE_HOME` or ~/.cache."""
    named = os.environ.get("PYDTCONV_CACHE")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pydtconv"


def _field(name: str) -> str:
    """A field of /proc/cpuinfo, "" where there is none."""
    try:
        match = re.search(rf"^{name}\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1].strip() if match else ""
