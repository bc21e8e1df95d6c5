"""The sizes of the caches that blocks of the C library are cut for: as the system says, or as PYDTCONV_CACHES says.

Virtual machines do not always tell their caches, or not those that they have.  `PYDTCONV_CACHES=48K,2M` sets L1 and L2
of a core (K and M are 1024 and 1024 squared; a third number is L3); an empty one in between stays as it was found.
Products and convolutions sum in blocks: other sizes give other last bits.
"""

from __future__ import annotations

import os
import re

from pydtconv._ext import runtime

NAMES = ("L1", "L2", "L3")
_LEAST, _MOST = 4 << 10, 1 << 40
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}


def sizes() -> dict[str, int]:
    """Bytes of the data caches that blocks are cut for, by name."""
    return {name: runtime.cache_bytes(level) for level, name in enumerate(NAMES, 1)}


def of_text(text: str) -> list[int]:
    """Bytes of L1, L2 and L3 in a text such as "48K,2M"; 0 for what it does not say.  Raises ValueError."""
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,13})([KM]?)", part.strip(), re.ASCII)
        size = int(match[1]) * _UNITS[match[2]] if match else 0
        if part.strip() and not _LEAST <= size <= _MOST:
            raise ValueError(f"PYDTCONV_CACHES: expected sizes such as 48K,2M, at least 4K each, got {text!r}")
        found.append(size)
    if len(found) > len(NAMES):
        raise ValueError(f"PYDTCONV_CACHES: expected at most {len(NAMES)} sizes, got {text!r}")
    return found + [0] * (len(NAMES) - len(found))


def set_by_environment() -> None:
    """Sets what PYDTCONV_CACHES says, before anything is planned.  Raises ValueError, and sets nothing then."""
    for level, size in enumerate(of_text(os.environ.get("PYDTCONV_CACHES", "")), 1):
        if size:
            runtime.set_cache_bytes(level, size)
