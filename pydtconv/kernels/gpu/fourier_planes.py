"""Real transforms of squares by cext/cuda/fourier_planes.cu: both axes in one pass over memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv.kernels.base import Call
from pydtconv.kernels.gpu.fourier import Side, factors_of, parts_of, reals_of


def serves(height: int, width: int, dtype: str, together: bool) -> bool:
    """Whether there is a kernel; together: points of a row lie together in memory, else channels do."""
    largest = 64 if together and dtype == "float32" else 32
    return 8 <= height == width <= largest


def block_of(points: int, itemsize: int, together: bool) -> tuple[int, int]:
    """Pairs of channels of a block, and its threads, as fourier_planes.cu has them."""
    pairs = ({8: 16, 16: 4} if together else {8: 32, 16: 16, 32: 4}).get(points, 1)
    pairs = max(pairs * 4 // itemsize, 1)
    return pairs, min(pairs * points * max(points // 8 if points > 16 else 1, 1), 256)


@dataclass(frozen=True)
class SquareTransform:
    """A batch of transforms of squares of points: N rows of N points, or N rows of N / 2 + 1 frequencies.

    batch: images and their channels.  Of sides, outer is the distance of images, middle that of rows.  starts, extents:
    the rows and points that are there, as in `Transform`.
    """

    points: int
    inverse: bool
    batch: tuple[int, int]
    source: Side
    target: Side
    starts: tuple[int, int]
    extents: tuple[int, int]
    scale: float = 1.0
    conjugate: bool = False
    accumulate: bool = False

    def bind(self, launcher: Any, x: Any, y: Any) -> Call:
        dtype = reals_of(y)
        images, channels = self.batch
        together = (self.target if self.inverse else self.source).point == 1
        pairs, threads = block_of(self.points, np.dtype(dtype).itemsize, together)
        places = (number for pair in zip(self.starts, self.extents, strict=True) for number in pair)
        sizes = (channels, images * channels, *self.source.numbers(), *self.target.numbers(), *places)
        flags = self.conjugate + 2 * self.accumulate + 16 * (self.source.unit == 2) + 32 * (self.target.unit == 2)
        way = "inverse" if self.inverse else "forward"
        return launcher.launch(
            f"fourier_planes.{'planes' if together else 'channels'}_{way}_{self.points}",
            dtype,
            (-(-images * channels // (2 * pairs)),),
            threads,
            *sizes,
            flags,
            float(self.scale),
            factors_of(launcher, self.points, dtype),
            parts_of(x),
            parts_of(y),
        )
