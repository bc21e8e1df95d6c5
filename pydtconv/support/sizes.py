"""Sizes of memory, as numbers of bytes or as text."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {f"{letter}i": 1 << 10 * (i + 1) for i, letter in enumerate("KMGT")}
_TEXT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kKMGT]?i?)B?\s*")


def as_bytes(name: str, size: Any) -> int | None:
    """Bytes of a number, or of a text such as "1GB", "800MiB" or "1.5 GiB"; None of None.

    Raises ValueError, naming the argument, for what is neither, or is below 0 or not finite.
    """
    if size is None:
        return None
    if isinstance(size, str):
        found = _TEXT.fullmatch(size)
        unit = found[2].replace("k", "K") if found else "?"
        if found and unit in _UNITS:
            return int(float(found[1]) * _UNITS[unit])
    elif isinstance(size, (int, float, np.number)) and not isinstance(size, bool) and math.isfinite(size) and size >= 0:
        return int(size)
    raise ValueError(f'{name}: expected bytes of 0 or more, or a text such as "800MiB" or "1GB", got {size!r}')
