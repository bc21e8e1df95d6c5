"""Storage objects, views into them, and their placement in one arena.

A storage is a piece of memory with a life time, counted in steps of the plan.  Several tensors may share one: slices
of a concatenation, results computed in place, a gradient that an addition passes on.  Placement gives each storage an
offset such that no two that live at the same time overlap: first fit, the largest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv.ops.base import Spec

ALIGNMENT = 64


@dataclass(eq=False)
class Storage:
    """A piece of memory: kind is "input", "activation", "recomputed", "saved", "gradient" or "workspace".

    first, last: the steps at which it is first written and last used.  offset: bytes into the arena, once placed.
    """

    name: str
    kind: str
    nbytes: int
    first: int = 1 << 60
    last: int = -1
    offset: int = -1

    def touch(self, step: int) -> None:
        self.first = min(self.first, step)
        self.last = max(self.last, step)


@dataclass(frozen=True, eq=False)
class View:
    """A tensor's place: a whole storage, or a slice of the channels of one (channel: the first; ld: all channels).

    home is a Storage, or anything else that the executor knows how to turn into an array (a parameter, a gradient of
    one, a constant).
    """

    home: Any
    spec: Spec
    channel: int = 0
    ld: int | None = None

    @property
    def is_slice(self) -> bool:
        return self.ld is not None and self.ld != self.spec.shape[-1]

    def overlaps(self, other: View) -> bool:
        """Whether the two share an element."""
        if self.home is not other.home:
            return False
        if not self.is_slice or not other.is_slice:
            return True
        return self.channel < other.channel + other.channels and other.channel < self.channel + self.channels

    @property
    def channels(self) -> int:
        return self.spec.shape[-1] or 0

    def same_place(self, other: View) -> bool:
        return (
            self.home is other.home
            and self.spec == other.spec
            and self.channel == other.channel
            and self.is_slice == other.is_slice
        )

    def array(self, arena: np.ndarray) -> np.ndarray:
        """The array in `arena` (1-D, uint8), for a view whose home is a placed storage."""
        dtype = np.dtype(self.spec.dtype)
        shape = self.spec.shape
        strides: list[int] | None = None
        if self.is_slice:
            assert self.ld is not None
            step, strides = self.ld * dtype.itemsize, [dtype.itemsize]
            for extent in reversed(shape[1:-1]):
                strides.insert(0, step)
                step *= extent or 0
            strides.insert(0, step)
        offset = self.home.offset + self.channel * dtype.itemsize
        return np.ndarray(shape, dtype, buffer=arena, offset=offset, strides=strides)  # type: ignore[arg-type]


def fresh(name: str, kind: str, spec: Spec) -> View:
    """A tensor in a storage of its own."""
    return View(Storage(name, kind, spec.nbytes), spec)


def place(storages: Sequence[Storage]) -> int:
    """Gives each storage its offset; returns the size of the arena in bytes."""
    order = sorted(storages, key=lambda storage: (-storage.nbytes, storage.first))
    count = len(order)
    first, last, start, end = (np.zeros(count, np.int64) for _ in range(4))
    for i, storage in enumerate(order):
        size = -(-storage.nbytes // ALIGNMENT) * ALIGNMENT
        alive = np.flatnonzero((first[:i] <= storage.last) & (last[:i] >= storage.first))
        alive = alive[np.argsort(start[alive], kind="stable")]
        used = np.maximum.accumulate(np.concatenate(([0], end[alive])))  # up to each of them, all before it
        fits = np.flatnonzero(start[alive] - used[:-1] >= size)
        offset = int(used[fits[0]] if fits.size else used[-1])
        storage.offset = offset
        first[i], last[i], start[i], end[i] = storage.first, storage.last, offset, offset + size
    return int(end.max(initial=0))
