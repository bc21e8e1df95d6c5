"""Transforms of cext/cuda/fourier.cu bound to arrays: any axis, real or complex, padded and clipped in place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from pydtconv.kernels.base import Call

#: points that a transform may have
LENGTHS = (2, 4, 8, 16, 32, 64, 128, 256)
_REALS = {"float32": "float32", "complex64": "float32", "float64": "float64", "complex128": "float64"}


@cache
def block_of(points: int, itemsize: int) -> tuple[int, int]:
    """Complex transforms of a block, and its threads, as fourier.cu has them."""
    rows = {32: 4, 64: 8, 128: 8, 256: 16}.get(points, 1)
    lanes = 32 if points * itemsize <= 512 else 16 if points * itemsize <= 1024 else 8
    columns = 2 * lanes if rows == 1 else lanes
    return columns, columns * rows


@dataclass(frozen=True)
class Side:
    """Where a transform reads, or writes: distances in elements between outer and middle places, channels and points.

    unit: reals from one element to the next; plane: reals between its parts; planes: 1 (real), 2 (real and imaginary
    parts), or 3 (their sum as well; where it is read: the three products of Gauss's method).
    """

    outer: int
    middle: int
    channel: int
    point: int
    unit: int = 1
    plane: int = 0
    planes: int = 1

    def numbers(self) -> tuple[int, ...]:
        """Distances in reals, and planes."""
        distances = (self.outer, self.middle, self.channel, self.point)
        return (*(self.unit * distance for distance in distances), self.plane, self.planes)


def interleaved(outer: int, middle: int, channel: int, point: int) -> Side:
    """A side of complex elements as NumPy has them."""
    return Side(outer, middle, channel, point, 2, 1, 2)


def planar(outer: int, middle: int, channel: int, point: int, plane: int, planes: int) -> Side:
    """A side whose parts lie in planes."""
    return Side(outer, middle, channel, point, 1, plane, planes)


@dataclass(frozen=True)
class Transform:
    """A batch of transforms along one axis.

    points: N.  batch: outer and middle places and channels.  start, extent: the points that are there: others are zeros
    where they are read and left out where they are written.  frequencies: N, or N / 2 + 1 of real points.
    conjugate: the spectrum is conjugated.
    """

    points: int
    inverse: bool
    batch: tuple[int, int, int]
    source: Side
    target: Side
    start: int
    extent: int
    frequencies: int
    scale: float = 1.0
    conjugate: bool = False
    accumulate: bool = False

    def bind(self, launcher: Any, x: Any, y: Any) -> Call:
        dtype = reals_of(y)
        outer, middle, channels = self.batch
        real = (self.target if self.inverse else self.source).planes == 1 and self.frequencies == self.points // 2 + 1
        bits = (
            *(self.conjugate, self.accumulate, self.source.channel != 1, self.target.channel != 1),
            *(side.unit == 2 for side in (self.source, self.target)),
        )
        count = outer * middle * channels
        sizes = (middle, channels, count, *self.source.numbers(), *self.target.numbers(), self.start, self.extent)
        kernel = f"fourier.{'inverse' if self.inverse else 'forward'}{'_real' * real}_{self.points}"
        columns, threads = block_of(self.points, np.dtype(dtype).itemsize)
        grid = (-(-count // (columns * (1 + real))),)
        flags = sum(1 << i for i, bit in enumerate(bits) if bit)
        factors = factors_of(launcher, self.points, dtype)
        return launcher.launch(
            kernel, dtype, grid, threads, *sizes, flags, float(self.scale), factors, parts_of(x), parts_of(y)
        )


def factors_of(launcher: Any, points: int, dtype: str) -> Any:
    """Cosines and sines of 2 pi k / N for k < N."""
    angles = 2 * np.pi * np.arange(points) / points
    return launcher.constant(np.stack([np.cos(angles), np.sin(angles)], -1), dtype)


def reals_of(array: Any) -> str:
    """The real dtype of an array's elements, or of their parts."""
    return _REALS[np.dtype(array.dtype).name]


def parts_of(array: Any) -> Any:
    """Complex elements as pairs of reals."""
    name = np.dtype(array.dtype).name
    return array.view(_REALS[name]) if name.startswith("complex") else array
