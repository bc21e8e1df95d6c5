"""Storages, and views into them.

A storage is a piece of memory with its life times, counted in steps of the plan.  Several tensors may share one: slices
of a concatenation, results computed in place, a gradient that an addition passes on.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pydtconv import dtypes
from pydtconv.ops.base import Spec


@dataclass(eq=False)
class Storage:
    """A piece of memory: kind is "input", "activation", "recomputed", "saved", "gradient" or "workspace".

    lives: the steps at which it is first written and last used; several where its contents are elsewhere in between.
    offset: bytes into the arena, once assigned, and a multiple of `alignment`.
    """

    name: str
    kind: str
    nbytes: int
    lives: list[tuple[int, int]] = field(default_factory=list)
    offset: int = -1
    alignment: int = 64
    released: bool = field(default=False, init=False, repr=False)

    def touch(self, step: int) -> None:
        """Notes a use: it extends the life that goes on, or begins one after `release`."""
        if not self.lives or self.released:
            self.lives.append((step, step))
            self.released = False
        elif step < self.lives[0][0]:
            self.lives[0] = (step, self.lives[0][1])
        else:
            first, last = self.lives[-1]
            self.lives[-1] = (first, max(last, step))

    def release(self) -> None:
        """Ends the present life: the next use writes it anew."""
        self.released = True

    def lives_at(self, step: int) -> bool:
        return any(first <= step <= last for first, last in self.lives)

    @property
    def first(self) -> int:
        return self.lives[0][0]

    @property
    def last(self) -> int:
        return self.lives[-1][1]


@dataclass(frozen=True, eq=False)
class View:
    """Where a tensor lies: a whole buffer, or a part of one.

    buffer: a Storage, or anything else that an executor knows how to turn into an array (a parameter, a gradient of
    one, a constant).  offset: bytes from its start.  strides: bytes between neighbours along each axis, None where the
    elements lie one after the other.
    """

    buffer: Any
    spec: Spec
    offset: int = 0
    strides: tuple[int, ...] | None = None

    @property
    def is_slice(self) -> bool:
        """Whether there are gaps between its elements."""
        return self.strides is not None

    def part(self, start: tuple[int, ...], spec: Spec) -> View:
        """The box of this view that begins at index `start` and has the shape of `spec`."""
        strides = self.strides or dense_strides(self.spec)
        offset = self.offset + sum(map(operator.mul, start, strides))
        return View(self.buffer, spec, offset, None if strides == dense_strides(spec) else strides)

    def overlaps(self, other: View) -> bool:
        """Whether the two share an element; True also where that cannot be told from offsets and strides."""
        if self.buffer is not other.buffer:
            return False
        if self.offset == other.offset:
            return True
        if self.strides is not None and self.strides == other.strides:
            return _boxes_overlap(self, other)
        return self.offset < other._end() and other.offset < self._end()

    def _end(self) -> int:
        """The byte behind the last element."""
        if self.strides is None:
            return self.offset + self.spec.nbytes
        reach = sum(((extent or 1) - 1) * stride for extent, stride in zip(self.spec.shape, self.strides, strict=True))
        return self.offset + reach + dtypes.itemsize(self.spec.dtype)

    def same_place(self, other: View) -> bool:
        """Whether both are the same elements in the same order; steps along an axis of one element tell nothing."""
        return (
            self.buffer is other.buffer
            and self.spec == other.spec
            and self.offset == other.offset
            and self._steps() == other._steps()
        )

    def _steps(self) -> list[int]:
        strides = self.strides or dense_strides(self.spec)
        return [stride for extent, stride in zip(self.spec.shape, strides, strict=True) if extent != 1]

    def array(self, arena: Any, make: Callable[..., Any] | None = None) -> Any:
        """The array in `arena` (1-D, uint8), for a view whose buffer is a storage with an offset.

        make: what makes it on a device, of (arena, byte, shape, dtype, strides); None: NumPy.
        """
        offset = self.buffer.offset + self.offset
        if make is None:
            return np.ndarray(self.spec.shape, dtypes.in_memory(self.spec.dtype), arena, offset, self.strides)  # type: ignore[arg-type]
        return make(arena, offset, self.spec.shape, dtypes.in_memory(self.spec.dtype), self.strides)


@functools.lru_cache(maxsize=1024)
def dense_strides(spec: Spec) -> tuple[int, ...]:
    """Bytes between neighbours along each axis of a dense array."""
    step, strides = dtypes.itemsize(spec.dtype), []
    for extent in reversed(spec.shape):
        strides.append(step)
        step *= extent or 1
    return tuple(reversed(strides))


def _boxes_overlap(a: View, b: View) -> bool:
    """Of two boxes of one dense array: each offset is a sum of indices times strides, so that it tells the indices."""
    first, second = a.offset, b.offset
    assert a.strides is not None
    for stride, n, m in zip(a.strides, a.spec.shape, b.spec.shape, strict=True):
        i, first = divmod(first, stride)
        j, second = divmod(second, stride)
        if i + (n or 0) <= j or j + (m or 0) <= i:
            return False
    return True


def fresh(name: str, kind: str, spec: Spec) -> View:
    """A tensor in a storage of its own."""
    return View(Storage(name, kind, spec.nbytes), spec)
