"""Measured times of convolution algorithms: a JSON file that `pydtconv tune` writes and every later choice reads.

The file is convolutions.json in `own_cache()`.  An entry belongs to one build of the C library, kind of CPU,
micro-kernel, number of threads, pass, and problem with all its sizes and its dtype; the entries of other builds are
kept, but for the oldest ones.  A file that cannot be read is ignored with a warning, and replaced by the next tuning.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydtconv import config, microkernels
from pydtconv._ext import library, ukr
from pydtconv.conv.problem import ConvProblem
from pydtconv.utils.machine import cpu_kind, own_cache
from pydtconv.utils.whole_file import write_whole

FORMAT = "pydtconv convolution timings"
VERSION = 1
#: builds of the library whose entries are kept
KEPT_BUILDS = 4

Seconds = dict[str, float]  # by algorithm
Entries = dict[str, Seconds]

_NONE: Seconds = {}
_entries: Entries | None = None


def path() -> Path:
    """The file."""
    return own_cache() / "convolutions.json"


def key(p: ConvProblem, direction: str) -> str:
    """What an entry belongs to, but for the build, with the threads and the micro-kernel now in force."""
    return f"{_cpu()} | {_kernel(p.dtype)} | {config.num_threads()} threads | {direction} {_sizes(p)}"


def measured(p: ConvProblem, direction: str) -> Mapping[str, float]:
    """Seconds by algorithm, as far as they have been measured; read from the file once in a process."""
    global _entries
    if _entries is None:
        builds = read()
        _entries = builds.get(build(), {}) if builds else {}
    return _entries.get(key(p, direction), _NONE) if _entries else _NONE


def add(found: Mapping[str, Seconds]) -> Path:
    """Puts entries by key into the file and in force.  Raises OSError where the file cannot be written."""
    global _entries
    builds = read()
    mine = builds.pop(build(), {}) | dict(found)
    kept = [*builds.items()][-(KEPT_BUILDS - 1) :]
    contents = {"format": FORMAT, "version": VERSION, "builds": dict([*kept, (build(), mine)])}
    write_whole(path(), lambda file: file.write(json.dumps(contents, indent=1).encode()))
    _entries = mine
    return path()


def forget() -> None:
    """Reads the file anew at the next choice."""
    global _entries
    _entries = None


def read() -> dict[str, Entries]:
    """The entries of all builds; none, with a warning, where the file is torn or another's."""
    try:
        contents = json.loads(path().read_text())
        return _checked(contents)
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


def _kernel(dtype: str) -> str:
    double = dtype == "float64"
    if ukr.current(double) < 0:
        return microkernels.selected(dtype).name  # which chooses one
    name: str = ukr.table(double)[ukr.current(double)][0]
    return name


def _sizes(p: ConvProblem) -> str:
    (top, bottom), (left, right) = p.padding
    image, filters = f"{p.n}x{p.ih}x{p.iw}x{p.ci}", f"{p.kh}x{p.kw}x{p.ci // p.groups}x{p.co}"
    steps = f"strides {p.sh},{p.sw} padding {top},{bottom},{left},{right} dilation {p.dil_h},{p.dil_w}"
    return f"{image} * {filters} {steps} groups {p.groups} {p.dtype}"
