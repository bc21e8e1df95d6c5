"""Names for what the user left unnamed: "conv2d", "conv2d_1", ...; they start again after `clear_session`."""

from __future__ import annotations

import re
from collections import Counter

_used: Counter[str] = Counter()


def to_snake_case(name: str) -> str:
    """ "Conv2DTranspose" -> "conv2d_transpose", as Keras names its layers."""
    name = re.sub(r"\W+", "", name)
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def auto_name(prefix: str) -> str:
    """The prefix as it is the first time, then with "_1", "_2", ... ."""
    count = _used[prefix]
    _used[prefix] += 1
    return f"{prefix}_{count}" if count else prefix


def clear_session(free_memory: bool = True) -> None:
    """Lets automatic names count from the start again; `free_memory` also runs Python's garbage collector."""
    import gc

    _used.clear()
    if free_memory:
        gc.collect()
