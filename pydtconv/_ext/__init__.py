"""Bindings to the C library; the import loads the build of it that suits this CPU.

`PYDTCONV_LEVEL` forces a level ("generic", "x86-64-v3", "x86-64-v4", "x86-64-v4-bf16").
"""

import ctypes
import os
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent / "lib"
_NAME = "libdtconv.dylib" if sys.platform == "darwin" else "libdtconv.so"
# best first, with the CPU features that each level needs
_LEVELS = {
    "x86-64-v4-bf16": {"avx2", "fma", "bmi2", "f16c", "avx512", "avx512_bf16"},
    "x86-64-v4": {"avx2", "fma", "bmi2", "f16c", "avx512"},
    "x86-64-v3": {"avx2", "fma", "bmi2", "f16c"},
    "generic": set(),
}


def available_levels() -> list[str]:
    """The built levels that this CPU can run, best first."""
    from pydtconv._ext import cpu

    features = cpu.features()
    return [level for level, needs in _LEVELS.items() if needs <= features and (_FOLDER / level / _NAME).exists()]


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
    ctypes.CDLL(str(_FOLDER / level / _NAME))


_load()
