"""Measured times of convolution algorithms: a JSON file that tuning writes and every later choice reads.

The file is convolutions.json in `own_cache()`.  An entry belongs to one build of the C library, kind of CPU,
micro-kernel, number of threads, pass, problem with all its sizes and its dtype, and precision of float32's products
other than "highest"; one of a device with memory of its own to the device, its kernels and the problem.  The entries of
other builds are kept, but for the oldest ones.  An entry without times says that
the pass was decided by the cost model.
A file that cannot be read is ignored with a warning, and replaced by the next tuning.  Who writes it holds a lock, and
replaces it as a whole, so that it can be read at any time.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydtconv import config
from pydtconv._ext import library
from pydtconv.conv.matmul_precision import kernel_in_force
from pydtconv.conv.problem import ConvProblem
from pydtconv.files.reading import read_json
from pydtconv.files.whole_file import write_alone
from pydtconv.support.machine import cpu_kind, own_cache

FORMAT = "pydtconv convolution timings"
VERSION = 1
#: builds of the library whose entries are kept
KEPT_BUILDS = 4
#: seconds between two looks at a lock that another process holds
_NAP = 0.05

Seconds = dict[str, float]  # by algorithm
Entries = dict[str, Seconds]

_NONE: Seconds = {}
_entries: Entries | None = None
_devices: dict[str, str] = {}


def path() -> Path:
    """The file."""
    return own_cache() / "convolutions.json"


def name_device(device: str, text: str) -> None:
    """What a device with memory of its own is called in the file: its model, and the build of its kernels."""
    _devices[device] = text


def key(p: ConvProblem, direction: str, device: str = "cpu") -> str:
    """What an entry belongs to, but for the build, with the threads and the micro-kernel now active.

    device: another one than this CPU, which has named itself before.
    """
    precision = config.float32_matmul_precision()
    among = f" {precision}" if p.dtype == "float32" and precision != "highest" else ""
    if device != "cpu":
        return f"{_devices.get(device, device)} | {direction} {_sizes(p)}{among}"
    return f"{_cpu()} | {kernel_in_force(p.dtype)} | {config.num_threads()} threads | {direction} {_sizes(p)}{among}"


def measured(p: ConvProblem, direction: str, device: str = "cpu") -> Mapping[str, float]:
    """Seconds by algorithm, as far as they have been measured; read from the file once in a process."""
    entries = _in_force()
    return entries.get(key(p, direction, device), _NONE) if entries else _NONE


def decided(p: ConvProblem, direction: str, device: str = "cpu") -> bool:
    """Whether there is an entry: the pass was measured, or left to the cost model once and for all."""
    entries = _in_force()
    return bool(entries) and key(p, direction, device) in entries


def _in_force() -> Entries:
    global _entries
    if _entries is None:
        builds = read()
        _entries = builds.get(build(), {}) if builds else {}
    return _entries


@contextmanager
def alone(seconds: float) -> Iterator[None]:
    """Keeps other processes of this machine from tuning and writing, and reads what they have written before.

    Waits for another one up to so many seconds.  Raises OSError where the folder cannot be written to, and
    TimeoutError, which is one, where the other one takes longer.
    """
    path().parent.mkdir(parents=True, exist_ok=True)
    with path().with_suffix(".lock").open("a") as file:
        end = time.monotonic() + seconds
        while not _locked(file.fileno()):
            if time.monotonic() >= end:
                raise TimeoutError(errno.ETIMEDOUT, f"another process has been tuning for {seconds:.1f} s", file.name)
            time.sleep(_NAP)
        forget()
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):  # file systems without locks
            raise
    return True


def add(found: Mapping[str, Seconds]) -> Path:
    """Puts entries by key into the file and uses them from now on; to be called within `alone`.

    Algorithms that an entry had before and that were not measured anew keep their times.
    Raises OSError where the file cannot be written.
    """
    global _entries
    builds = read()
    mine = builds.pop(build(), {})
    mine |= {name: mine.get(name, {}) | seconds for name, seconds in found.items()}
    kept = [*builds.items()][-(KEPT_BUILDS - 1) :]
    contents = {"format": FORMAT, "version": VERSION, "builds": dict([*kept, (build(), mine)])}
    write_alone(path(), lambda file: file.write(json.dumps(contents, indent=1).encode()))
    _entries = mine
    return path()


def forget() -> None:
    """Reads the file anew at the next choice."""
    global _entries
    _entries = None


def read() -> dict[str, Entries]:
    """The entries of all builds; none, with a warning, where the file is torn or another's."""
    try:
        return _checked(read_json(path(), "timings of convolutions"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        warnings.warn(f"{path()} is ignored, run `pydtconv tune` again: {error}", RuntimeWarning, stacklevel=4)
        return {}


@lru_cache(maxsize=1)
def build() -> str:
    """A digest of the C library that is loaded."""
    return hashlib.sha256(library().read_bytes()).hexdigest()[:16]


@lru_cache(maxsize=1)
def _cpu() -> str:
    return cpu_kind()


def _checked(contents: Any) -> dict[str, Entries]:
    if contents["format"] != FORMAT or contents["version"] != VERSION:
        raise ValueError(f"expected {FORMAT!r}, version {VERSION}, got {contents['format']!r}, {contents['version']!r}")
    builds: dict[str, Entries] = contents["builds"]
    for entries in builds.values():
        for seconds in entries.values():
            if not all(isinstance(value, float) and value > 0 for value in seconds.values()):
                raise ValueError(f"expected seconds by algorithm, got {seconds!r}")
    return builds


def _sizes(p: ConvProblem) -> str:
    image, filters = ("x".join(map(str, shape)) for shape in (p.x_shape, p.w_shape))
    strides, dilation = (",".join(map(str, values)) for values in (p.strides, p.dilation))
    sides = ",".join(str(side) for axis in p.padding for side in axis)
    return f"{image} * {filters} strides {strides} padding {sides} dilation {dilation} groups {p.groups} {p.dtype}"
