"""The largest batch with a plan within a limit."""

from __future__ import annotations

from collections.abc import Callable

from pydtconv.graph import MemoryLimitError

_MOST = 1 << 20


def largest_batch(plan: Callable[[int], object]) -> int:
    """The largest batch that `plan` plans: exact below 32, above to a sixteenth.

    plan: gets a batch size.  Raises its MemoryLimitError where one sample is too much.
    """

    def fits(size: int) -> bool:
        try:
            plan(size)
        except MemoryLimitError:
            return False
        return True

    plan(1)
    low = 1
    while low < _MOST and fits(2 * low):
        low *= 2
    high = 2 * low
    while high - low > max(low // 16, 1):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
