"""What the machine is called, and where pydtconv keeps what it has found out about it."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

#: bytes; control groups of the first version have this or a little less where they have no limit
_UNLIMITED = 1 << 62


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
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or home() / ".cache") / "pydtconv"


def home() -> Path:
    """The user's folder; of a user whom the system does not know, as in some containers, the root."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def memory_left(root: Path = Path("/")) -> int | None:
    """Bytes that the limits of this process's control groups leave to its arrays; None: there are none.

    What the system can take back from the group (caches of files) counts as left, and so does free swap space.
    root: the folder that holds proc/ and sys/.
    """
    mount, found = root / "sys/fs/cgroup", []
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found += _left(mount, path, "memory.max", ("anon", "shmem"))
        elif "memory" in controllers.split(","):
            found += _left(mount / "memory", path, "memory.limit_in_bytes", ("total_rss", "total_shmem"))
    if not found:
        return None
    swap = [line.split()[1] for line in _lines(root / "proc/meminfo") if line.startswith("SwapFree:")]
    return max(0, min(found)) + sum(int(kib) << 10 for kib in swap)


def memory_available(root: Path = Path("/")) -> int | None:
    """Bytes that arrays may still take: what the system has, within `memory_left`.  None where nothing is known."""
    free = [int(line.split()[1]) << 10 for line in _lines(root / "proc/meminfo") if line.startswith("MemAvailable:")]
    left = memory_left(root)
    return min(free if left is None else [*free, left], default=None)


def _left(mount: Path, path: str, limit: str, kept: tuple[str, str]) -> list[int]:
    """What each limit from a group's folder up to the mount leaves; kept: the figures of what cannot be taken back."""
    found = []
    folder = mount / path.strip("/")  # in a container the path may be that of the host: then the mount is the group
    for group in (folder, *(parent for parent in folder.parents if parent == mount or mount in parent.parents)):
        text = next(iter(_lines(group / limit)), "max")
        figures = dict(line.split() for line in _lines(group / "memory.stat"))
        if text.isdigit() and kept[0] in figures and int(text) < _UNLIMITED:
            found.append(int(text) - sum(int(figures.get(name, 0)) for name in kept))
    return found


def _lines(path: Path) -> list[str]:
    """Of a file of the system; none where there is no such file."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _field(name: str) -> str:
    """A field of /proc/cpuinfo, "" where there is none."""
    try:
        match = re.search(rf"^{name}\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        match = None
    return match[1].strip() if match else ""
