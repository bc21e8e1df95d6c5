"""The layout algebra: which interval of an axis each process holds, and which one it reads.

Intervals are (start, stop) in the coordinates of the whole axis.  A partition of an axis is one interval for each
process along a mesh axis, in order, without gaps.  Nothing here knows of processes or tensors.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pydtconv.ops.base import Window

Interval = tuple[int, int]
#: an interval for each process along a mesh axis
Intervals = tuple[Interval, ...]
#: an interval for each of some axes
Box = tuple[Interval, ...]


def balanced(extent: int, parts: int) -> Intervals:
    """A partition into parts that differ by one at most; the first ones are the larger."""
    each, more = divmod(extent, parts)
    starts = [i * each + min(i, more) for i in range(parts + 1)]
    return tuple(itertools.pairwise(starts))


def from_bounds(bounds: Sequence[int], extent: int) -> Intervals:
    """The partition whose inner bounds these are, brought into 0 ... extent and into order."""
    found = [0]
    for bound in bounds:
        found.append(min(max(bound, found[-1]), extent))
    found.append(extent)
    return tuple(itertools.pairwise(found))


def any_empty(intervals: Intervals) -> bool:
    return any(start >= stop for start, stop in intervals)


def window_outputs(window: Window, held: Intervals, outputs: int) -> Intervals:
    """The partition of an operator's output that goes with a partition of its input.

    Each output lies where the middle of its window does; of a transposed operator, where what it is made of does.
    """
    stride, before, reach = window.stride, window.before, window.reach
    starts = [start for start, _ in held[1:]]
    if window.transposed:
        return from_bounds([start * stride + (reach - stride) // 2 - before for start in starts], outputs)
    return from_bounds([-((reach - 1 - 2 * (start + before)) // (2 * stride)) for start in starts], outputs)


def window_reads(window: Window, output: Interval, extent: int) -> Interval:
    """The interval of the input that these outputs read; empty where they read padding alone, or are none."""
    (start, stop), stride, before, reach = output, window.stride, window.before, window.reach
    if start >= stop:
        return (0, 0)
    if window.transposed:
        # x[i] goes to outputs i * stride - before ... + reach - 1; between them there may be gaps that nothing reaches
        first = min(-((reach - 1 - start - before) // stride), (start + before) // stride)
        last = (stop - 1 + before) // stride
    else:
        first = start * stride - before
        last = (stop - 1) * stride - before + reach - 1
    first, last = max(first, 0), min(last, extent - 1)
    return (first, last + 1) if first <= last else (0, 0)


def window_padding(window: Window, output: Interval, read: Interval) -> tuple[int, int]:
    """Padding before and after `read` with which the operator gives these outputs and no others.

    Of a transposed operator: what is cut off before and after; the latter is negative where zeros are added.
    """
    (start, stop), stride, before, reach = output, window.stride, window.before, window.reach
    if window.transposed:
        cut = start + before - read[0] * stride
        return cut, (read[1] - read[0] - 1) * stride + reach - cut - (stop - start)
    first = start * stride - before
    last = (stop - 1) * stride - before + reach
    return read[0] - first, max(last - read[1], 0)  # what is read may go on behind the last window


def shifted(intervals: Intervals, by: int, extent: int) -> Intervals:
    """The partition of an axis of `extent` that begins `by` elements earlier."""
    return from_bounds([start - by for start, _ in intervals[1:]], extent)


def scaled(intervals: Intervals, factor: int) -> Intervals:
    return tuple((start * factor, stop * factor) for start, stop in intervals)


def intersection(a: Box, b: Box) -> Box | None:
    """What two boxes share; None for nothing."""
    found = tuple((max(i, k), min(j, m)) for (i, j), (k, m) in zip(a, b, strict=True))
    return None if any(start >= stop for start, stop in found) else found


def difference(a: Box, b: Box) -> list[Box]:
    """Boxes that together are `a` without `b`, without overlap."""
    common = intersection(a, b)
    if common is None:
        return [a]
    parts: list[Box] = []
    for axis, ((start, stop), (first, last)) in enumerate(zip(a, common, strict=True)):
        for interval in ((start, first), (last, stop)):
            if interval[0] < interval[1]:
                parts.append((*common[:axis], interval, *a[axis + 1 :]))
    return parts


def pieces(need: Box, held: Sequence[Box], index: int) -> list[tuple[int, Box]]:
    """From which process each part of `need` comes: (process, box), without overlap, of process `index`.

    What it holds itself comes from there; of others that hold a part, the nearest one in their order gives it.
    Raises ValueError where nobody holds a part.
    """
    order = sorted(range(len(held)), key=lambda other: (abs(other - index), other))
    found: list[tuple[int, Box]] = []
    missing = [need]
    for other in order:
        left: list[Box] = []
        for part in missing:
            common = intersection(part, held[other])
            if common is None:
                left.append(part)
            else:
                found.append((other, common))
                left += difference(part, common)
        missing = left
        if not missing:
            return found
    raise ValueError(f"pieces: expected every element of {need} somewhere, got none for {missing[0]}")
