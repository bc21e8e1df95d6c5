"""Where storages lie in the arena: no two that live at the same time overlap.  First fit, the largest first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pydtconv.graph.memory.storage import Storage

ALIGNMENT = 64


def assign_offsets(storages: Sequence[Storage]) -> int:
    """Gives each storage its offset; returns the size of the arena in bytes."""
    order = sorted(storages, key=lambda storage: (-storage.nbytes, storage.first))
    count = sum(len(storage.lives) for storage in order)
    first, last, start, end = (np.zeros(count, np.int64) for _ in range(4))  # a row for each life
    rows = 0
    for storage in order:
        size = -(-storage.nbytes // ALIGNMENT) * ALIGNMENT
        meets = [(first[:rows] <= stop) & (last[:rows] >= begin) for begin, stop in storage.lives]
        alive = np.flatnonzero(meets[0] if len(meets) == 1 else np.logical_or.reduce(meets))
        alive = alive[np.argsort(start[alive], kind="stable")]
        used = np.maximum.accumulate(np.concatenate(([0], end[alive])))  # up to each of them, all before it
        fits = np.flatnonzero(start[alive] - used[:-1] >= size)
        offset = int(used[fits[0]] if fits.size else used[-1])
        storage.offset = offset
        for begin, stop in storage.lives:
            first[rows], last[rows], start[rows], end[rows] = begin, stop, offset, offset + size
            rows += 1
    return int(end.max(initial=0))
