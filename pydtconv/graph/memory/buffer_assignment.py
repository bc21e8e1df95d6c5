"""Where storages lie in the arena: no two that live at the same time overlap.  First fit, the largest first.

Where the gaps that this leaves make the arena larger than it may be, or than what lives at one time, other orders are
tried: long lives count, too, and what reached too high comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from pydtconv.graph.memory.storage import Storage

ALIGNMENT = 64
#: where the arena is too large: powers of a storage's life that its size is multiplied by, for its place in the order
POWERS = (0.25, 0.5)
#: times that what reached too high is placed first
RAISED = 6
#: how much larger than all that lives at one time an arena may be before other orders are tried
GAPS = 1.005


def assign_offsets(storages: Sequence[Storage], limit: int | None = None) -> int:
    """Gives each storage its offset; returns the size of the arena in bytes.

    limit: bytes; while the arena is larger, other orders are tried, and the best one is taken.  None: hardly more than
    what lives at one time.
    """
    order = sorted(storages, key=lambda storage: (-storage.nbytes, storage.first))
    size = _place(order)
    if limit is None:
        limit = int(GAPS * _most_alive(storages))
    if size <= limit:
        return size
    found = (size, [storage.offset for storage in storages])
    for power in POWERS:
        order.sort(key=lambda storage: -storage.nbytes * _life(storage) ** power)
        found = min(found, (_place(order), [storage.offset for storage in storages]))
    for _ in range(RAISED):
        if found[0] <= limit:
            break
        order.sort(key=lambda storage: storage.offset + storage.nbytes <= limit)
        found = min(found, (_place(order), [storage.offset for storage in storages]))
    for storage, offset in zip(storages, found[1], strict=True):
        storage.offset = offset
    return found[0]


def _most_alive(storages: Sequence[Storage]) -> int:
    """The most bytes that live at one time: no arena is smaller."""
    changes: list[tuple[int, int]] = []
    for storage in storages:
        size = -(-storage.nbytes // ALIGNMENT) * ALIGNMENT
        for begin, stop in storage.lives:
            changes += (begin, size), (stop + 1, -size)
    return max(accumulate(size for _, size in sorted(changes)), default=0)  # at one time, what ends comes first


def _life(storage: Storage) -> int:
    return sum(stop - begin + 1 for begin, stop in storage.lives)


def _place(order: Sequence[Storage]) -> int:
    """Gives offsets in this order, each the lowest that is free; returns the size of the arena in bytes."""
    count = sum(len(storage.lives) for storage in order)
    first, last, start, end = (np.zeros(count, np.int64) for _ in range(4))  # a row for each life
    rows = 0
    for storage in order:
        size = -(-storage.nbytes // ALIGNMENT) * ALIGNMENT
        align = max(storage.alignment, ALIGNMENT)
        meets = [(first[:rows] <= stop) & (last[:rows] >= begin) for begin, stop in storage.lives]
        alive = np.flatnonzero(meets[0] if len(meets) == 1 else np.logical_or.reduce(meets))
        alive = alive[np.argsort(start[alive], kind="stable")]
        used = np.maximum.accumulate(np.concatenate(([0], end[alive])))  # up to each of them, all before it
        if align > ALIGNMENT:
            used = -(-used // align) * align
        fits = np.flatnonzero(start[alive] - used[:-1] >= size)
        offset = int(used[fits[0]] if fits.size else used[-1])
        storage.offset = offset
        for begin, stop in storage.lives:
            first[rows], last[rows], start[rows], end[rows] = begin, stop, offset, offset + size
            rows += 1
    return int(end.max(initial=0))
