"""Branches of which a value chooses when a step runs: all are traced, so they may only compute."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class _Depth(threading.local):
    """How many branches this thread is inside of."""

    count = 0


_depth = _Depth()


def traced(branch: Callable[..., Any], *operands: Any) -> Any:
    """What a branch gives, which another one may be chosen over."""
    _depth.count += 1
    try:
        return branch(*operands)
    finally:
        _depth.count -= 1


def check_none(what: str) -> None:
    """Raises NotImplementedError inside of such a branch: what it changes would be changed whichever is chosen."""
    if _depth.count:
        raise NotImplementedError(
            f"{what} in a branch of cond or switch, whose condition is known when a step runs: expected branches that "
            "only compute; choose values by where, or run the step as Python: compile(run_eagerly=True), no tf.function"
        )
