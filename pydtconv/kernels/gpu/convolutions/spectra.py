"""The spectra of a convolution in the Fourier domain: where they lie, and the transforms that make them.

Spectra are written frequency by frequency, so that a product reads them as they lie: as complex numbers, or in three
planes, of which a complex product is three real ones (Gauss).  Each occurs in two passes, and a pass may leave them for
another one of the same strategy: forward those of x, for backward_weights, and of w, for backward_data;
backward_weights that of dy, for backward_data, where it is one tile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from pydtconv import dtypes
from pydtconv.conv.problem import ConvProblem
from pydtconv.kernels.base import Call
from pydtconv.kernels.gpu.arrays import aligned, part, pixel_stride
from pydtconv.kernels.gpu.convolutions.algorithm import Kept
from pydtconv.kernels.gpu.convolutions.strategies import Layout, Tile, results_of, tiles_of
from pydtconv.kernels.gpu.fourier import Side, Transform, interleaved, planar
from pydtconv.kernels.gpu.fourier_planes import SquareTransform

#: the spectra that each pass multiplies, and the pass that makes each first
OPERANDS = {
    "forward": ("spectra", "w_spectra"),
    "backward_data": ("dy_spectra", "w_spectra"),
    "backward_weights": ("spectra", "dy_spectra"),
}
MAKERS = {"spectra": "forward", "w_spectra": "forward", "dy_spectra": "backward_weights"}
_COMPLEX = {"float32": "complex64", "float64": "complex128"}


class Spectra:
    """What lies where in a pass: two spectra, their products, and what is transformed by halves.

    kept: spectra by name that another pass has left, or that this one leaves.  shapes: of the matrices of the products.
    product: (planes * frequencies, rows, columns), as are the operands.
    """

    def __init__(
        self, p: ConvProblem, direction: str, layout: Layout, kept: Kept = None, workspace: Any = None, like: Any = None
    ) -> None:
        self.p, self.direction, self.layout, self.names = p, direction, layout, OPERANDS[direction]
        self._kept = {name: array for name, array in (kept or {}).items() if name in self.names}
        n, ci, co = p.n, p.ci, p.co
        self.shapes = {
            "forward": ((n, ci), (ci, co), (n, co)),
            "backward_data": ((n, co), (ci, co), (n, ci)),
            "backward_weights": ((n, ci), (n, co), (ci, co)),
        }[direction]
        itemsize, places = dtypes.itemsize(p.dtype), []
        halves = 2 * layout.columns * layout.height.points * max(map(math.prod, self.shapes)) * (not layout.at_once)
        self.nbytes = 0
        numbers = [layout.reals * layout.frequencies * math.prod(each) for each in self.shapes]
        for i, size in enumerate((*numbers, halves)):
            places.append(self.nbytes)
            if i > 1 or self.names[i] not in self._kept:
                self.nbytes += aligned(size * itemsize)
        if workspace is None:
            return
        self._dtype = np.dtype(like.dtype if layout.gauss else _COMPLEX[np.dtype(like.dtype).name])
        self._workspace, self._places = workspace, places
        self.product = part(workspace, places[2], self._matrices(2), self._dtype, self._dtype.itemsize)
        self.half = part(workspace, places[3], (halves,), like.dtype, itemsize)

    def _matrices(self, i: int) -> tuple[int, int, int]:
        planes = self.layout.reals if self.layout.gauss else 1
        return (planes * self.layout.frequencies, *self.shapes[i])

    def elements(self, name: str) -> int:
        """Reals of the spectra of this name, of all tiles where there are several."""
        i = self.names.index(name)
        tiles = 1 if name == "w_spectra" else sum(1 for _ in self.tiles())
        return tiles * self.layout.reals * self.layout.frequencies * math.prod(self.shapes[i])

    def operands(self, number: int) -> list[Any]:
        """Both operands of the products of a tile."""
        return [self._operand(i, number) for i in (0, 1)]

    def _operand(self, i: int, number: int) -> Any:
        kept, shape = self._kept.get(self.names[i]), self._matrices(i)
        if kept is None:
            return part(self._workspace, self._places[i], shape, self._dtype, self._dtype.itemsize)
        reals = self.layout.reals * self.layout.frequencies * math.prod(self.shapes[i])
        first = 0 if self.names[i] == "w_spectra" else number * reals
        return kept[first : first + reals].view(self._dtype).reshape(shape)

    def _is_there(self, i: int) -> bool:
        """Whether another pass has left this operand."""
        return self.names[i] in self._kept and MAKERS[self.names[i]] != self.direction

    def tiles(self) -> Iterator[tuple[Tile, Tile]]:
        """The tiles of results, of backward_weights those of dy."""
        found = []
        for axis, basis, whole in zip(
            self.p.axes[1:], (self.layout.height, self.layout.width), self.layout.whole, strict=True
        ):
            results = results_of(axis, self.direction)
            if self.direction != "backward_data":
                found.append(tiles_of(basis, results, axis.extent, axis.before))
            elif whole:  # as backward_weights transforms it
                found.append([Tile(0, results, 0, 0, axis.out)])
            else:
                found.append(tiles_of(basis, results, axis.out, axis.kernel - 1 - axis.before))
        return ((tile_h, tile_w) for tile_h in found[0] for tile_w in found[1])

    def image(
        self,
        launcher: Any,
        x: Any,
        tile_h: Tile,
        tile_w: Tile,
        target: Any,
        conjugate: bool = False,
        operand: int = 0,
    ) -> list[Call]:
        """The spectrum of a tile of all images (n, [h,] w, c), where it is not there."""
        if self._is_there(operand):
            return []
        n, c, ld = x.shape[0], x.shape[-1], pixel_stride(x)
        width = x.shape[-2]
        height = x.shape[1] if x.ndim == 4 else 1
        if not tile_h.extent or not tile_w.extent:
            return [launcher.fill(target.view(x.dtype), 0.0)]
        image = x.reshape((n, height, width, c))
        begin = image[:, tile_h.source :, tile_w.source :]
        rows = Side(height * width * ld, width * ld, 1, ld)
        return self._forward(launcher, begin, rows, (n, c), tile_h, tile_w, target, conjugate)

    def filters(self, launcher: Any, w: Any) -> list[Call]:
        """The conjugate of the filters' spectrum, the second operand, where it is not there."""
        if self._is_there(1):
            return []
        p = self.p
        _, height, width = p.axes
        channels = p.ci * p.co
        tile_h, tile_w = (Tile(0, axis.kernel, 0, 0, axis.kernel) for axis in (height, width))
        rows = Side(0, width.kernel * channels, 1, channels)
        return self._forward(launcher, w, rows, (1, channels), tile_h, tile_w, self._operand(1, 0), True)

    def _side(self, outer: int, middle: int, point: int, plane: int) -> Side:
        """Of spectra as products take them: complex numbers, or three planes."""
        if self.layout.gauss:
            return planar(outer, middle, 1, point, plane, 3)
        return interleaved(outer, middle, 1, point)

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
            final = self._side(c, 0, n * c, plane)
            call = Transform(
                self.layout.width.points, False, (n, 1, c), rows, final, tile_w.start, tile_w.extent, columns,
                conjugate=conjugate,
            )  # fmt: skip
            return [call.bind(launcher, x, target)]
        if self.layout.at_once:
            final = self._side(c, n * c, points * n * c, plane)
            starts, extents = zip(*((tile.start, tile.extent) for tile in (tile_h, tile_w)), strict=True)
            square = SquareTransform(points, False, batch, rows, final, starts, extents, conjugate=conjugate)
            return [square.bind(launcher, x, target)]
        height = tile_h.extent
        half = planar(height * c, c, 1, n * height * c, columns * n * height * c, 2)
        first = Transform(
            self.layout.width.points, False, (n, height, c), rows, half, tile_w.start, tile_w.extent, columns
        )
        source = planar(n * height * c, height * c, 1, c, columns * n * height * c, 2)
        final = self._side(points * n * c, c, n * c, plane)
        second = Transform(
            points, False, (columns, n, c), source, final, tile_h.start, height, points, conjugate=conjugate
        )
        return [first.bind(launcher, x, self.half), second.bind(launcher, self.half, target)]

    def back(
        self,
        launcher: Any,
        y: Any,
        tile_h: Tile,
        tile_w: Tile,
        starts: tuple[int, int],
        adds: bool,
        conjugate: bool = False,
    ) -> list[Call]:
        """The products' tile of all images (n, [h,] w, c); starts: the points that the first results are."""
        n, c, ld, width = y.shape[0], y.shape[-1], pixel_stride(y), y.shape[-2]
        height = y.shape[1] if y.ndim == 4 else 1
        begin = y.reshape((n, height, width, c))[:, tile_h.first :, tile_w.first :]
        rows = Side(height * width * ld, width * ld, 1, ld)
        return self._inverse(launcher, begin, rows, (n, c), (tile_h.count, tile_w.count), starts, adds, conjugate)

    def filters_back(self, launcher: Any, dw: Any) -> list[Call]:
        """The gradient of the filters, from the products."""
        _, height, width = self.p.axes
        channels = self.p.ci * self.p.co
        rows = Side(0, width.kernel * channels, 1, channels)
        counts = (height.kernel, width.kernel)
        return self._inverse(launcher, dw, rows, (1, channels), counts, (0, 0), False, False)

    def _inverse(
        self,
        launcher: Any,
        y: Any,
        rows: Side,
        batch: tuple[int, int],
        counts: tuple[int, int],
        starts: tuple[int, int],
        adds: bool,
        conjugate: bool,
    ) -> list[Call]:
        """Columns, then rows."""
        (n, c), columns, points = batch, self.layout.columns, self.layout.height.points
        plane, width = self.layout.frequencies * n * c, self.layout.width.points
        scale = 1.0 / (points * width)
        if points == 1:
            source = self._side(c, 0, n * c, plane)
            call = Transform(
                width, True, (n, 1, c), source, rows, starts[1], counts[1], columns, scale, conjugate, adds
            )
            return [call.bind(launcher, self.product, y)]
        if self.layout.at_once:
            source = self._side(c, n * c, points * n * c, plane)
            square = SquareTransform(points, True, batch, source, rows, starts, counts, scale, conjugate, adds)
            return [square.bind(launcher, self.product, y)]
        height = counts[0]
        source = self._side(points * n * c, c, n * c, plane)
        half = planar(n * height * c, height * c, 1, c, columns * n * height * c, 2)
        first = Transform(points, True, (columns, n, c), source, half, starts[0], height, points, conjugate=conjugate)
        of_rows = planar(height * c, c, 1, n * height * c, columns * n * height * c, 2)
        second = Transform(
            width, True, (n, height, c), of_rows, rows, starts[1], counts[1], columns, scale, False, adds
        )
        return [first.bind(launcher, self.product, self.half), second.bind(launcher, self.half, y)]
