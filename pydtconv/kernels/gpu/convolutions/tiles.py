"""Tiles of CONVGEMM's kernels: rows and columns that a block multiplies, with which threads, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydtconv.kernels.gpu.arrays import PACK

#: multiprocessors of the GPU that tiles and parts are chosen for (an H100)
PROCESSORS = 132


@dataclass(frozen=True)
class Tile:
    """Of down * across threads, each with as many rows and columns as two packs have elements; or of slices of these.

    peak: the share of arithmetic in the time that it and shared memory take, by the counts of benchmarks/gpu_counts.py.
    resident: blocks that registers leave room for.
    """

    down: int
    across: int
    peak: float
    resident: int
    slices: int = 1

    #: terms of the sums that a block multiplies at a time (convgemm.h); what the names of its files end in; of WarpTile
    deep, suffix, lines = 8, "", False

    @property
    def threads(self) -> int:
        return self.down * self.across * self.slices

    @property
    def name(self) -> str:
        return f"{self.down}x{self.across}" + (f"x{self.slices}" if self.slices > 1 else "")

    def sizes(self, itemsize: int) -> tuple[int, int]:
        """Rows and columns."""
        each = 2 * PACK // itemsize
        return self.down * each, self.across * each

    def blocks(self, rows: int, columns: int, itemsize: int) -> int:
        height, width = self.sizes(itemsize)
        return -(-rows // height) * -(-columns // width)

    def padded(self, rows: int, columns: int, itemsize: int) -> int:
        """Products of a product whose tiles are full."""
        return self.blocks(rows, columns, itemsize) * math.prod(self.sizes(itemsize))

    def cost(self, rows: int, columns: int, itemsize: int, others: int) -> float:
        """What a product takes: the products of the busiest multiprocessor, slower where it has few warps.

        Each of its four schedulers wants a warp, and others for the time that memory takes; how many is a guess.
        """
        height, width = self.sizes(itemsize)
        each = -(-self.blocks(rows, columns, itemsize) * others // PROCESSORS)
        warps = min(each, self.resident) * self.threads / 128
        return each * height * width / (self.peak * min(1.0, warps) * max(1.0, warps) / (max(1.0, warps) + 0.5))


@dataclass(frozen=True)
class WarpTile(Tile):
    """Of down * across warps, each with so many rows and columns, or of slices of these: products in TF32.

    lines: what taps of a line read is copied once for all of them (convgemm_lines_tf32.cu); of backward_weights each
    warp down has one of three taps (convgemm_weights_lines_tf32.cu).
    """

    deep: int = 16
    warp: tuple[int, int] = (64, 64)
    lines: bool = False

    @property
    def suffix(self) -> str:  # type: ignore[override]
        return "_lines_tf32" if self.lines else "_tf32"

    @property
    def threads(self) -> int:
        return 32 * self.down * self.across * self.slices

    @property
    def name(self) -> str:
        return "x".join(map(str, (*self.sizes(4), *[self.slices] * (self.slices > 1))))

    def sizes(self, itemsize: int) -> tuple[int, int]:
        return self.down * self.warp[0], self.across * self.warp[1]


LARGE, MIDDLE, NARROW = Tile(16, 16, 0.89, 2), Tile(16, 8, 0.84, 3), Tile(16, 4, 0.76, 6)
SMALL, SLICED, SLICED_NARROW = Tile(8, 8, 0.80, 6), Tile(8, 8, 0.78, 1, 4), Tile(8, 4, 0.70, 3, 4)

_OF_PIXELS = (
    WarpTile(2, 2, 0.57, 2),
    WarpTile(4, 1, 0.47, 2),
    WarpTile(4, 1, 0.28, 3, warp=(64, 32)),
    WarpTile(2, 1, 0.43, 2, 2, deep=8),
    WarpTile(1, 1, 0.38, 2, 4, deep=8),
    WarpTile(1, 1, 0.25, 3, 4, deep=8, warp=(64, 32)),
)
_OF_LINES = tuple(
    replace(tile, peak=peak, lines=True)
    for tile, peak in zip(_OF_PIXELS, (0.68, 0.66, 0.42, 0.59, 0.48, 0.33), strict=True)
)
_OF_TAPS = (WarpTile(2, 2, 0.55, 2), WarpTile(2, 1, 0.40, 4), WarpTile(2, 1, 0.24, 6, warp=(64, 32)))
_OF_THREE_TAPS = WarpTile(3, 1, 0.70, 2, lines=True), WarpTile(3, 1, 0.46, 3, warp=(64, 32), lines=True)
_FEW_OF_PIXELS, _FEW_OF_TAPS = WarpTile(2, 2, 0.36, 2, warp=(64, 32)), WarpTile(2, 1, 0.30, 6, warp=(32, 64))

#: by pass, of channels that packs divide; FEW: of others
TILES: dict[str, Sequence[Tile]] = {
    "forward": (LARGE, MIDDLE, NARROW, SLICED, SLICED_NARROW),
    "backward_data": (LARGE, MIDDLE, NARROW, SLICED, SLICED_NARROW),
    "backward_weights": (MIDDLE, NARROW, SMALL),
}
FEW: dict[str, Sequence[Tile]] = dict.fromkeys(TILES, (MIDDLE, SMALL))
#: the same in TF32, of results as wide as what is read (TF32_LINES), and of others
TF32_LINES: dict[str, Sequence[Tile]] = {
    "forward": _OF_LINES,
    "backward_data": _OF_LINES,
    "backward_weights": (*_OF_TAPS, *_OF_THREE_TAPS),
}
TF32_TILES: dict[str, Sequence[Tile]] = {
    "forward": _OF_PIXELS,
    "backward_data": _OF_PIXELS,
    "backward_weights": _OF_TAPS,
}
TF32_FEW: dict[str, Sequence[Tile]] = {
    "forward": (_FEW_OF_PIXELS,),
    "backward_data": (_FEW_OF_PIXELS,),
    "backward_weights": (_FEW_OF_TAPS,),
}


def tiles_of(direction: str, wide: bool, tf32: bool, lines: bool = False) -> Sequence[Tile]:
    """wide: of channels that packs divide; lines: of images whose lines are as wide as those of results."""
    if tf32:
        return (TF32_FEW if not wide else TF32_LINES if lines else TF32_TILES)[direction]
    return (TILES if wide else FEW)[direction]


def threads_of(file: str, kernel: str) -> int | None:
    """Threads of a block of a kernel of convgemm's files; None for others."""
    direction = next((name for name in TILES if kernel.startswith(name)), None)
    if not file.startswith("convgemm") or direction is None:
        return None
    few, name = "_few_" in kernel, kernel.rpartition("_")[2]
    tiles = tiles_of(direction, not few, file.endswith("_tf32"), "_lines_" in file)
    return next(tile.threads for tile in tiles if tile.name == name)
