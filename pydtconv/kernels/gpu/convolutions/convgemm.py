"""CONVGEMM (cext/cuda/convgemm.cu, convgemm_weights.cu): products whose loads into shared memory are the im2col.

Forward and backward_data need no workspace, backward_weights room for the parts of its sums.  Tiles and parts follow
from the problem alone, so that results have the same bits on every GPU.  Where `config.set_float32_matmul_precision`
allows it and the device can, products are those of tensor cores in TF32 (convgemm_tf32.cu, convgemm_weights_tf32.cu).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from pydtconv import config, dtypes
from pydtconv.conv.problem import Axis, ConvProblem
from pydtconv.kernels.base import Call, sequence
from pydtconv.kernels.gpu.arrays import PACK, in_packs, part, pixel_stride
from pydtconv.kernels.gpu.convolutions.algorithm import Kept, Work
from pydtconv.kernels.gpu.convolutions.tiles import PROCESSORS, Tile, tiles_of

#: taps of a line that may share what they read (BESIDE of convgemm_lines_tf32.cu)
MOST_ALONG = 8
#: taps of a line that share them in backward_weights (convgemm_weights_lines_tf32.cu)
ALONG = 3
#: pixels of a part of backward_weights at least, and parts at most
LEAST_PIXELS, MOST_PARTS = 512, 256
#: what 32 bits hold with a tile behind it; blocks along the grid's y and z axes
MOST, MOST_BLOCKS = 2**31 - 2**10, 65535


class Side(NamedTuple):
    """One axis of a product's rows: `axis_size` of convgemm.h, in its order."""

    rows: int
    extent: int
    scale: int
    offset: int
    step: int
    taps: int
    first: int
    period: int
    kernel: int
    results: int
    start: int
    stride: int


def _forward_side(a: Axis) -> Side:
    return Side(a.out, a.extent, a.stride, -a.before, a.dilation, a.kernel, 0, 1, a.kernel, a.out, 0, 1)


def residues(a: Axis) -> list[Side]:
    """The pixels of an axis of dx by their residues to the stride, each with the taps of dy that reach it."""
    found, period = [], a.stride // math.gcd(a.stride, a.dilation)
    for residue in range(min(a.stride, a.extent)):
        taps = [tap for tap in range(min(period, a.kernel)) if (residue + a.before - tap * a.dilation) % a.stride == 0]
        first = taps[0] if taps else 0
        count = -(-(a.kernel - first) // period) if taps else 0
        offset = (residue + a.before - first * a.dilation) // a.stride
        rows = -(-(a.extent - residue) // a.stride)
        step = -(period * a.dilation // a.stride)
        found.append(Side(rows, a.out, 1, offset, step, count, first, period, a.kernel, a.extent, residue, a.stride))
    return found


class Plan(NamedTuple):
    """How a pass is cut: its tile, whether channels are loaded in packs, and parts of so many pixels."""

    tile: Tile
    wide: bool
    parts: int = 1
    pixels: int = 0


@lru_cache(maxsize=4096)
def plan_of(p: ConvProblem, direction: str, wide: bool, tf32: bool = False) -> Plan:
    """wide: whether channels are loaded in packs; they are only where packs divide them.  tf32: by tensor cores."""
    itemsize, inputs, outputs = dtypes.itemsize(p.dtype), p.ci // p.groups, p.co // p.groups
    pack = PACK // itemsize
    wide = wide and outputs % pack == 0 and (direction == "backward_data" or inputs % pack == 0)
    tiles = tiles_of(direction, wide, tf32, shares_lines(p, direction))
    if direction == "backward_weights":
        pixels = p.n * math.prod(p.out)
        tile = min(tiles, key=lambda each: each.padded(rows_of_weights(p, each), outputs, itemsize) / each.peak)
        blocks = tile.blocks(rows_of_weights(p, tile), outputs, itemsize) * p.groups
        wanted = -(-PROCESSORS * tile.resident // blocks)
        parts = max(1, min(wanted, MOST_PARTS, pixels // LEAST_PIXELS))
        each = -(-pixels // parts // tile.deep) * tile.deep
        return Plan(tile, wide, -(-pixels // each), each)
    if direction == "forward":
        rows, columns, others = p.n * math.prod(p.out), outputs, p.groups
    else:
        rows, columns = p.n * math.prod(-(-a.extent // a.stride) for a in p.axes), inputs
        others = p.groups * math.prod(min(a.stride, a.extent) for a in p.axes)
    return Plan(min(tiles, key=lambda each: each.cost(rows, columns, itemsize, others)), wide)


def shares_lines(p: ConvProblem, direction: str) -> bool:
    """Whether taps of a line read one another's pixels, pixels of results lie as those that are read, and there are
    kernels for so many taps."""
    a = p.axes[-1]
    least, most = (ALONG, ALONG) if direction == "backward_weights" else (2, MOST_ALONG)
    return a.stride == a.dilation == 1 and a.extent == a.out and least <= a.kernel <= most


def rows_of_weights(p: ConvProblem, tile: Tile) -> int:
    """Taps with their channels; with tiles of lines each tap has its own, of which some are not there."""
    inputs = p.ci // p.groups
    each = tile.sizes(4)[0] // tile.down if tile.lines else 1
    return math.prod(p.kernel) * -(-inputs // each) * each


def rounds(p: ConvProblem) -> bool:
    """Whether operands may be rounded to TF32, where the device multiplies it."""
    return p.dtype == "float32" and config.float32_matmul_precision() != "highest"


def sizes_of(p: ConvProblem, sides: Sequence[Sequence[Side]], inputs: int, outputs: int) -> list[list[int]]:
    """What a launch is told of each choice of sides (depth, height, width)."""
    each = product(*sides)
    return [[p.n, inputs // p.groups, outputs // p.groups, *(n for side in one for n in side)] for one in each]


class Convgemm:
    """Serves every problem whose coordinates fit 31 bits; one launch for all groups."""

    def plan(self, p: ConvProblem, direction: str, wide: bool, tf32: bool = False) -> Plan:
        return plan_of(p, direction, wide, tf32)

    def reason(self, p: ConvProblem, direction: str) -> str | None:
        pixels = p.n * max(math.prod(p.spatial), math.prod(p.out))
        terms = math.prod(p.kernel) * max(p.ci, p.co)
        residues = math.prod(min(a.stride, a.extent) for a in p.axes)
        if max(pixels, terms) > MOST:
            return f"expected at most {MOST} pixels and taps with their channels, got {pixels} and {terms}"
        if any(a.extent + a.before + a.after + a.kernel * a.dilation >= 1 << 30 for a in p.axes):
            return f"expected fewer than 2^30 pixels along an axis with its padding, got {p.spatial} and {p.padding}"
        if p.groups > MOST_BLOCKS or residues > MOST_BLOCKS:
            return f"expected at most {MOST_BLOCKS} groups, and pixels between outputs, got {p.groups} and {residues}"
        return None

    def others(self, p: ConvProblem, direction: str, count: int) -> list[str]:
        return []

    def work(self, p: ConvProblem, direction: str) -> Work:
        """What is there is moved once; tiles that are not full multiply zeros."""
        images = math.prod(p.x_shape) + math.prod(p.y_shape) + math.prod(p.w_shape)
        nbytes = dtypes.itemsize(p.dtype) * images + 2 * self.workspace(p, direction)
        return Work(p.flops / self.plan(p, direction, True).tile.peak, float(nbytes))

    def workspace(self, p: ConvProblem, direction: str, kept: Collection[str] = ()) -> int:
        """The partial sums of backward_weights, by the tile that has the most parts."""
        if direction != "backward_weights":
            return 0
        kinds = product((False, True), {False, rounds(p)})
        parts = max(self.plan(p, direction, wide, tf32).parts for wide, tf32 in kinds)
        return 0 if parts == 1 else parts * math.prod(p.w_shape) * dtypes.itemsize(p.dtype)

    def forward(
        self, launcher: Any, p: ConvProblem, x: Any, w: Any, y: Any, workspace: Any, adds: bool, kept: Kept = None
    ) -> Call:
        return self._gather(launcher, p, "forward", [[_forward_side(a)] for a in p.axes], x, w, y, adds)

    def backward_data(
        self, launcher: Any, p: ConvProblem, dy: Any, w: Any, dx: Any, workspace: Any, adds: bool, kept: Kept = None
    ) -> Call:
        return self._gather(launcher, p, "backward_data", [residues(a) for a in p.axes], dy, w, dx, adds)

    def plan_on(self, launcher: Any, p: ConvProblem, direction: str, wide: bool) -> Plan:
        return self.plan(p, direction, wide, rounds(p) and launcher.device.has_tf32)

    def _gather(
        self, launcher: Any, p: ConvProblem, direction: str, sides: list[list[Side]], x: Any, w: Any, y: Any, adds: bool
    ) -> Call:
        """y (+)= the pass of x, or of dy."""
        plan, itemsize = self.plan_on(launcher, p, direction, in_packs(x, w)), y.itemsize
        sizes = sizes_of(p, sides, x.shape[-1], y.shape[-1])
        columns, rows = y.shape[-1] // p.groups, p.n * math.prod(max(side.rows for side in axis) for axis in sides)
        packs = columns * itemsize % PACK == 0 and in_packs(y)
        grid = plan.tile.blocks(rows, columns, itemsize), p.groups, len(sizes)
        name = f"convgemm{plan.tile.suffix}.{direction}_{'' if plan.wide else 'few_'}{plan.tile.name}"
        arguments = (packs, x, pixel_stride(x), w, p.co, adds, y, pixel_stride(y))
        return launcher.launch(name, y.dtype, grid, plan.tile.threads, launcher.constant(sizes, np.int64), *arguments)

    def backward_weights(
        self, launcher: Any, p: ConvProblem, x: Any, dy: Any, dw: Any, workspace: Any, kept: Kept = None
    ) -> Call:
        plan, count = self.plan_on(launcher, p, "backward_weights", in_packs(x, dy)), math.prod(p.w_shape)
        columns, rows = p.co // p.groups, rows_of_weights(p, plan.tile)
        (sizes,) = sizes_of(p, [[_forward_side(a)] for a in p.axes], p.ci, p.co)
        target = dw if plan.parts == 1 else part(workspace, 0, (plan.parts, count), dw.dtype, dw.itemsize)
        packs = columns * dw.itemsize % PACK == 0 and in_packs(target)
        grid = plan.tile.blocks(rows, columns, dw.itemsize), p.groups, plan.parts
        few = "" if plan.wide else "few_"
        name = f"convgemm_weights{plan.tile.suffix}.backward_weights_{few}{plan.tile.name}"
        arguments = (packs, plan.pixels, x, pixel_stride(x), dy, pixel_stride(dy), target, p.co)
        calls = [
            launcher.launch(name, dw.dtype, grid, plan.tile.threads, launcher.constant(sizes, np.int64), *arguments)
        ]
        if plan.parts > 1:
            calls.append(launcher.each("convgemm_weights.sum", dw.dtype, count, plan.parts, count, target, dw))
        return sequence(calls)
