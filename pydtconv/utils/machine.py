"""What the machine is called."""

from __future__ import annotations

import platform
import re
from pathlib import Path


def cpu_name() -> str:
    """The CPU as it calls itself."""
    try:
        match = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        match = None
    return match[1].strip() if match else platform.processor() or platform.machine()
