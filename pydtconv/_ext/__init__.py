"""Bindings to the C library; the import loads the build of it that suits this CPU.

`PYDTCONV_LEVEL` forces a level ("generic", "x86-64-v3", "x86-64-v4").
"""

import ctypes
import os
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent / "lib"
_NAME = "libdtconv.dylib" if sys.platform == "darwin" else "libdtconv.so"
# best first, with the CPU features that each level needs
_LEVELS = {
    "x86-64-v4": {"avx2", "fma", "bmi2", "f16c", "avx512"},
    "x86-64-v3": {"avx2", "fma", "bmi2", "f16c"},
    "generic": set(),
}
#: how long a waiting thread spins: a sleeping one is woken in 5 to 50 us
_SPIN_SECONDS = 15e-6


def available_levels() -> list[str]:
    """The built levels that this CPU can run, best first."""
    from pydtconv._ext import cpu

    features = cpu.features()
    return [level for level, needs in _LEVELS.items() if needs <= features and (_FOLDER / level / _NAME).exists()]


def spin_count() -> int:
    """Rounds that a waiting thread spins for before it sleeps: about as long as it takes to wake it.

    Of the same number of rounds some processors make seven times as much as others, so they are measured.
    """
    from pydtconv._ext import cpu

    return max(1, min(20000, round(_SPIN_SECONDS / max(cpu.pause_seconds(), 1e-9))))


def _load_with_short_waits(path: Path) -> None:
    """Loads the library such that its waiting threads spin for a short while before they sleep.

    GNU's OpenMP reads its settings once, when it is loaded.  Its own default is to spin for 300000 rounds or more, on
    cores that others may want, perhaps the very thread that is waited for.  What the user has set counts; other
    libraries and child processes see nothing of it.
    """
    if "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ:
        ctypes.CDLL(str(path))
        return
    os.environ["GOMP_SPINCOUNT"] = str(spin_count())
    try:
        ctypes.CDLL(str(path))
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def library() -> Path:
    """The build of the library that is loaded."""
    from pydtconv._ext import runtime

    return _FOLDER / runtime.level() / _NAME


def _load() -> None:
    """Loads libdtconv; the Cython modules, which ask for it by name, then get this build and not the generic one."""
    try:
        choices = available_levels()
    except ImportError:
        choices = []
    if not choices:
        raise ImportError(f"pydtconv's C library is not built (looked in {_FOLDER}): run 'pip install .'")
    level = os.environ.get("PYDTCONV_LEVEL") or choices[0]
    if level not in choices:
        raise ImportError(f"PYDTCONV_LEVEL={level!r} cannot be used here: expected one of {', '.join(choices)}")
    _load_with_short_waits(_FOLDER / level / _NAME)


_load()
