"""Convolution in the Fourier domain (Vasilache et al., ICLR 2015), by the kernels of cext/cuda/fourier.cu.

    y  = x . conj(w)      dx = conj(conj(dy) . conj(w))      dw = x . conj(dy)      for each frequency

are products of matrices over channels, or images.  Spectra are written frequency by frequency, so that a product reads
them as they lie, in three planes: a complex product is three real ones (Gauss).  Images that need more points than a
basis has go in tiles (overlap-save); of backward_weights the products of tiles are summed before the transform back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydtconv import dtypes
from pydtconv.conv.problem import Axis, ConvProblem
from pydtconv.kernels.base import Call, sequence
from pydtconv.kernels.gpu.arrays import aligned, part, pixel_stride
from pydtconv.kernels.gpu.fourier import LENGTHS, Side, Transform, planar

PLANES = 3


@dataclass(frozen=True)
class Tile:
    """Along one axis: results [first, first + count), from the points of the source that begin at `source`.

    start: the first point of the transform that is there; extent: how many are.
    """

    first: int
    count: int
    source: int
    start: int
    extent: int


@dataclass(frozen=True)
class Basis:
    """Points of the transform along one axis, and how many results a tile has; 1 point: there is no such axis."""

    points: int
    results: int


def basis_of(kernel: int, results: int) -> Basis:
    """The basis with the fewest points over all tiles; of equal ones the largest."""
    if kernel == results == 1:
        return Basis(1, 1)
    fitting = [n for n in LENGTHS if n >= kernel]
    tiles = {n: -(-results // (n - kernel + 1)) for n in fitting}
    points = min(fitting, key=lambda n: (tiles[n] * n, -n))
    return Basis(points, points - kernel + 1)


def tiles_of(basis: Basis, results: int, extent: int, shift: int) -> list[Tile]:
    """The tiles of an axis; result i is made of the points of the source from i - shift on."""
    found = []
    for first in range(0, results, basis.results):
        count, wanted = min(basis.results, results - first), first - shift
        source = max(wanted, 0)
        start = source - wanted
        there = max(min(extent - source, basis.points - start), 0)
        found.append(Tile(first, count, min(source, extent), start, there))
    return found


@dataclass(frozen=True)
class Layout:
    """The transforms of one pass: bases of height and width, and frequencies of a tile."""

    height: Basis
    width: Basis

    @property
    def columns(self) -> int:
        """Frequencies along the width."""
        return self.width.points // 2 + 1

    @property
    def frequencies(self) -> int:
        return self.columns * self.height.points


@lru_cache(maxsize=256)
def layout_of(p: ConvProblem, direction: str) -> Layout:
    _, height, width = p.axes
    of = (lambda a: a.extent) if direction == "backward_data" else (lambda a: a.out)
    return Layout(basis_of(height.kernel, of(height)), basis_of(width.kernel, of(width)))


class Fourier:
    """Strides and dilation of 1, no groups, one or two axes."""

    def reason(self, p: ConvProblem, direction: str) -> str | None:
        if p.rank > 2:
            return f"expected images of one or two axes, got {p.rank}"
        if {*p.strides, *p.dilation} != {1}:
            return f"expected strides and dilation of 1, got {p.strides} and {p.dilation}"
        if p.groups != 1:
            return f"expected one group, got {p.groups}"
        if max(p.kernel) > LENGTHS[-1] // 2:
            return f"expected a kernel of {LENGTHS[-1] // 2} or less, got {p.kernel}"
        if any(before > axis.kernel - 1 or after > axis.kernel - 1 for axis, before, after in _paddings(p)):
            return f"expected less padding than the kernel has taps, got {p.padding}"
        if p.is_pointwise:
            return "expected more than one tap, got a pointwise convolution"
        return None

    def workspace(self, p: ConvProblem, direction: str) -> int:
        return _Places(p, direction).nbytes

    def forward(self, launcher: Any, p: ConvProblem, x: Any, w: Any, y: Any, workspace: Any, adds: bool) -> Call:
        places = _Places(p, "forward", workspace, x)
        calls = [places.filters(launcher, w)]
        for tile_h, tile_w in places.tiles(p):
            calls += [
                *places.spectrum(launcher, x, tile_h, tile_w, places.first),
                launcher.gemm_batched(places.first, places.second, places.product),
                *places.back(launcher, y, tile_h, tile_w, 0, adds),
            ]
        return sequence(calls)

    def backward_data(
        self, launcher: Any, p: ConvProblem, dy: Any, w: Any, dx: Any, workspace: Any, adds: bool
    ) -> Call:
        places = _Places(p, "backward_data", workspace, dy)
        calls = [places.filters(launcher, w)]
        for tile_h, tile_w in places.tiles(p):
            calls += [
                *places.spectrum(launcher, dy, tile_h, tile_w, places.first, conjugate=True),
                launcher.gemm_batched(places.first, places.second.transpose((0, 2, 1)), places.product),
                *places.back(launcher, dx, tile_h, tile_w, 1, adds, conjugate=True),
            ]
        return sequence(calls)

    def backward_weights(self, launcher: Any, p: ConvProblem, x: Any, dy: Any, dw: Any, workspace: Any) -> Call:
        places = _Places(p, "backward_weights", workspace, x)
        calls: list[Call] = []
        for number, (tile_h, tile_w) in enumerate(places.tiles(p)):
            own_h, own_w = (Tile(t.first, t.count, t.first, 0, t.count) for t in (tile_h, tile_w))
            calls += [
                *places.spectrum(launcher, x, tile_h, tile_w, places.first),
                *places.spectrum(launcher, dy, own_h, own_w, places.second, conjugate=True),
                launcher.gemm_batched(places.first.transpose((0, 2, 1)), places.second, places.product, number > 0),
            ]
        return sequence([*calls, *places.filters_back(launcher, dw)])


def _paddings(p: ConvProblem) -> Iterator[tuple[Axis, int, int]]:
    return ((axis, axis.before, axis.after) for axis in p.axes)


class _Places:
    """What lies where in the workspace of a pass: two spectra, their products, and what is transformed by halves.

    first, second, product: (planes * frequencies, rows, columns) of the matrices of the products.
    """

    def __init__(self, p: ConvProblem, direction: str, workspace: Any = None, like: Any = None) -> None:
        self.p, self.direction, self.layout = p, direction, layout_of(p, direction)
        n, ci, co, count = p.n, p.ci, p.co, PLANES * self.layout.frequencies
        shapes = {
            "forward": ((n, ci), (ci, co), (n, co)),
            "backward_data": ((n, co), (ci, co), (n, ci)),
            "backward_weights": ((n, ci), (n, co), (ci, co)),
        }[direction]
        height, columns = self.layout.height.points, self.layout.columns
        halves = 2 * columns * height * max(rows * each for rows, each in shapes)
        self.nbytes, self._at = 0, []
        itemsize = dtypes.itemsize(p.dtype)
        for size in (*(count * rows * each for rows, each in shapes), halves):
            self._at.append(self.nbytes)
            self.nbytes += aligned(size * itemsize)
        if workspace is not None:
            self.first, self.second, self.product = (
                part(workspace, at, (count, *shape), like.dtype, itemsize)
                for at, shape in zip(self._at, shapes, strict=False)
            )
            self.half = part(workspace, self._at[3], (halves,), like.dtype, itemsize)

    def tiles(self, p: ConvProblem) -> Iterator[tuple[Tile, Tile]]:
        """The tiles of results, of backward_weights those of dy."""
        found = []
        for axis, basis in zip(p.axes[1:], (self.layout.height, self.layout.width), strict=True):
            if self.direction == "backward_data":
                found.append(tiles_of(basis, axis.extent, axis.out, axis.kernel - 1 - axis.before))
            else:
                found.append(tiles_of(basis, axis.out, axis.extent, axis.before))
        return ((tile_h, tile_w) for tile_h in found[0] for tile_w in found[1])

    def spectrum(
        self, launcher: Any, x: Any, tile_h: Tile, tile_w: Tile, target: Any, conjugate: bool = False
    ) -> list[Call]:
        """Of a tile of all images (n, [h,] w, c)."""
        n, c, ld = x.shape[0], x.shape[-1], pixel_stride(x)
        width = x.shape[-2]
        height = x.shape[1] if x.ndim == 4 else 1
        if not tile_h.extent or not tile_w.extent:
            return [launcher.fill(target, 0.0)]
        image = x.reshape((n, height, width, c))
        begin = image[:, tile_h.source :, tile_w.source :]
        rows = Side(height * width * ld, width * ld, 1, ld)
        return self._forward(launcher, begin, rows, (n, c), tile_h, tile_w, target, conjugate)

    def filters(self, launcher: Any, w: Any) -> Call:
        """The conjugate of the filters' spectrum, as the second operand."""
        p = self.p
        _, height, width = p.axes
        channels = p.ci * p.co
        tile_h, tile_w = (Tile(0, axis.kernel, 0, 0, axis.kernel) for axis in (height, width))
        rows = Side(0, width.kernel * channels, 1, channels)
        return sequence(self._forward(launcher, w, rows, (1, channels), tile_h, tile_w, self.second, True))

    def _forward(
        self,
        launcher: Any,
        x: Any,
        rows: Side,
        batch: tuple[int, int],
        tile_h: Tile,
        tile_w: Tile,
        target: Any,
        conjugate: bool,
    ) -> list[Call]:
        """Rows, then columns; where there is one row, its frequencies are the result."""
        (n, c), columns, points = batch, self.layout.columns, self.layout.height.points
        plane = self.layout.frequencies * n * c
        if points == 1:
            final = planar(c, 0, 1, n * c, plane, PLANES)
            call = Transform(
                self.layout.width.points, False, (n, 1, c), rows, final, tile_w.start, tile_w.extent, columns,
                conjugate=conjugate,
            )  # fmt: skip
            return [call.bind(launcher, x, target)]
        height = tile_h.extent
        half = planar(height * c, c, 1, n * height * c, columns * n * height * c, 2)
        first = Transform(
            self.layout.width.points, False, (n, height, c), rows, half, tile_w.start, tile_w.extent, columns
        )
        source = planar(n * height * c, height * c, 1, c, columns * n * height * c, 2)
        final = planar(points * n * c, c, 1, n * c, plane, PLANES)
        second = Transform(
            points, False, (columns, n, c), source, final, tile_h.start, height, points, conjugate=conjugate
        )
        return [first.bind(launcher, x, self.half), second.bind(launcher, self.half, target)]

    def back(
        self, launcher: Any, y: Any, tile_h: Tile, tile_w: Tile, late: int, adds: bool, conjugate: bool = False
    ) -> list[Call]:
        """The products' tile of all images (n, [h,] w, c); late: whether the results are the last points."""
        n, c, ld, width = y.shape[0], y.shape[-1], pixel_stride(y), y.shape[-2]
        height = y.shape[1] if y.ndim == 4 else 1
        begin = y.reshape((n, height, width, c))[:, tile_h.first :, tile_w.first :]
        rows = Side(height * width * ld, width * ld, 1, ld)
        starts = [late * (axis.kernel - 1) for axis in self.p.axes[1:]]
        return self._inverse(launcher, begin, rows, (n, c), (tile_h.count, tile_w.count), starts, adds, conjugate)

    def filters_back(self, launcher: Any, dw: Any) -> list[Call]:
        """The gradient of the filters, from the products."""
        _, height, width = self.p.axes
        channels = self.p.ci * self.p.co
        rows = Side(0, width.kernel * channels, 1, channels)
        counts = (height.kernel, width.kernel)
        return self._inverse(launcher, dw, rows, (1, channels), counts, [0, 0], False, False)

    def _inverse(
        self,
        launcher: Any,
        y: Any,
        rows: Side,
        batch: tuple[int, int],
        counts: tuple[int, int],
        starts: list[int],
        adds: bool,
        conjugate: bool,
    ) -> list[Call]:
        """Columns, then rows."""
        (n, c), columns, points = batch, self.layout.columns, self.layout.height.points
        plane, width = self.layout.frequencies * n * c, self.layout.width.points
        scale = 1.0 / (points * width)
        if points == 1:
            source = planar(c, 0, 1, n * c, plane, PLANES)
            call = Transform(
                width, True, (n, 1, c), source, rows, starts[1], counts[1], columns, scale, conjugate, adds
            )
            return [call.bind(launcher, self.product, y)]
        height = counts[0]
        source = planar(points * n * c, c, 1, n * c, plane, PLANES)
        half = planar(n * height * c, height * c, 1, c, columns * n * height * c, 2)
        first = Transform(points, True, (columns, n, c), source, half, starts[0], height, points, conjugate=conjugate)
        of_rows = planar(height * c, c, 1, n * height * c, columns * n * height * c, 2)
        second = Transform(
            width, True, (n, height, c), of_rows, rows, starts[1], counts[1], columns, scale, False, adds
        )
        return [first.bind(launcher, self.product, self.half), second.bind(launcher, self.half, y)]
