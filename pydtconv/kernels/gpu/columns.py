"""Sums over the rows of matrices (cext/cuda/columns.cu), in two steps: parts of the rows, then the parts."""

from __future__ import annotations

import math
from typing import Any

from pydtconv import dtypes
from pydtconv.kernels.base import Call, nothing, sequence
from pydtconv.kernels.gpu.arrays import aligned, part, size_of
from pydtconv.ops.base import Spec

#: the most parts that rows are cut into, on any device
MOST_PARTS = 256
WIDTH, THREADS = 32, 256
#: blocks beyond which more parts make nothing faster
ENOUGH_BLOCKS = 1024


def sums_bytes(x: Spec, count: int = 1) -> int:
    """Bytes of workspace of `count` sums over the rows of an array: their parts."""
    channels = x.shape[-1] or 1
    rows = x.size // channels
    return aligned(min(MOST_PARTS, -(-rows // 64) or 1) * channels * dtypes.itemsize(x.dtype) * count)


def grid_of(launcher: Any, rows: int, channels: int) -> tuple[int, int]:
    blocks = -(-channels // WIDTH)
    return blocks, min(MOST_PARTS, launcher.column_parts(rows), max(1, ENOUGH_BLOCKS // blocks))


def bind_column_sums(
    launcher: Any,
    x: Any,
    y: Any,
    workspace: Any,
    accumulate: bool = False,
    factor: float = 1.0,
    mean: Any = None,
) -> Call:
    """y (+)= factor * the sum of x's rows, or of the squares of their distances from a mean."""
    rows, channels, ld = size_of(x)
    y = y.reshape(-1)
    if rows * channels == 0:
        return nothing if accumulate else launcher.fill(y, 0.0)
    grid = grid_of(launcher, rows, channels)
    parts = part(workspace, 0, (grid[1], channels), x.dtype, x.itemsize)
    first = launcher.launch("columns.column_sums", x.dtype, grid, THREADS, rows, channels, x, ld, mean, parts)
    return sequence([first, bind_totals(launcher, parts, y, factor, accumulate)])


def bind_totals(launcher: Any, parts: Any, y: Any, factor: float = 1.0, accumulate: bool = False) -> Call:
    """y (+)= factor * the sum of parts (count, channels), or of each of several sets of them."""
    sets, (count, channels) = math.prod(parts.shape[:-2]), parts.shape[-2:]
    grid = (-(-sets * channels // WIDTH),)
    arguments = (sets, count, channels, parts, float(factor), accumulate, y)
    return launcher.launch("columns.column_totals", y.dtype, grid, THREADS, *arguments)


def bind_statistics(launcher: Any, x: Any, mean: Any, variance: Any, workspace: Any) -> Call:
    """Mean and biased variance of each channel: two passes."""
    rows, _, _ = size_of(x)
    share = 1.0 / max(rows, 1)
    return sequence(
        [
            bind_column_sums(launcher, x, mean, workspace, factor=share),
            bind_column_sums(launcher, x, variance, workspace, factor=share, mean=mean),
        ]
    )
