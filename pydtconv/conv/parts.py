"""Which pairs of blocks a convolution of two cut sequences is made of, and when their sums are transformed back.

a is cut into n1 blocks of l1 elements and b into n2 of l2, one length dividing the other.  The product of blocks i and
j lies at i * l1 + j * l2 and has l1 + l2 - 1 elements.  All pairs of one offset can be summed before one inverse
transform; offsets that differ by a multiple of l1 + l2 do not meet.  So the offsets fall into (l1 + l2) / min(l1, l2)
divisions, and in each of them the intervals of results lie side by side.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass

Pair = tuple[int, int]


@dataclass(frozen=True)
class Interval:
    """Results from `start` on, and the pairs (block of a, block of b) whose products are summed there."""

    start: int
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Division:
    """Intervals one behind the other, l1 + l2 apart."""

    index: int
    intervals: tuple[Interval, ...]


def _size(name: str, value: object, least: int = 1) -> int:
    try:
        size = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"{name}: expected an integer, got {value!r}") from None
    if size < least:
        raise ValueError(f"{name}: expected an integer of {least} or more, got {size}")
    return size


def schedule(n1: int, n2: int, l1: int, l2: int, start: int = 0, stop: int | None = None) -> tuple[Division, ...]:
    """The divisions of the results [start, stop) of the full convolution: all of them where stop is None.

    n1 blocks of l1 elements and n2 blocks of l2.  Pairs whose product does not reach the slice are not in it, nor are
    intervals that do not meet it; an interval that no pair adds to is there without pairs.
    Raises ValueError for sizes below 1, blocks that do not divide each other, and a slice outside of the result.
    """
    n1, n2, l1, l2 = (
        _size(name, value) for name, value in zip(("n1", "n2", "l1", "l2"), (n1, n2, l1, l2), strict=True)
    )
    if max(l1, l2) % min(l1, l2):
        raise ValueError(f"l1, l2: expected block lengths of which one divides the other, got {l1} and {l2}")
    length = n1 * l1 + n2 * l2 - 1
    start, end = _size("start", start, 0), length if stop is None else _size("stop", stop, 0)
    if not start < end <= length:
        raise ValueError(f"start, stop: expected a slice of the {length} results, got {start} to {end}")
    step, spacing = min(l1, l2), l1 + l2
    return tuple(
        Division(index, tuple(_intervals(n1, n2, l1, l2, index * step, spacing, start, end)))
        for index in range(spacing // step)
    )


def _intervals(
    n1: int, n2: int, l1: int, l2: int, first: int, spacing: int, start: int, end: int
) -> Iterator[Interval]:
    """The intervals of one division that meet [start, end)."""
    last = (n1 - 1) * l1 + (n2 - 1) * l2 + spacing
    for offset in range(first, last + 1, spacing):
        if offset < end and offset + spacing - 1 > start:
            yield Interval(offset, tuple(_pairs(n1, n2, l1, l2, offset)))


def _pairs(n1: int, n2: int, l1: int, l2: int, offset: int) -> Iterator[Pair]:
    """Blocks i and j with i * l1 + j * l2 == offset, by i."""
    for i in range(min(n1 - 1, offset // l1) + 1):
        j, rest = divmod(offset - i * l1, l2)
        if not rest and j < n2:
            yield i, j
