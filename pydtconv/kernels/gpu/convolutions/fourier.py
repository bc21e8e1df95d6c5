"""Convolution in the Fourier domain (Vasilache et al., ICLR 2015), by the kernels of cext/cuda/fourier.cu.

    y  = x . conj(w)      dx = conj(conj(dy) . conj(w))      dw = x . conj(dy)      for each frequency

are products of matrices over channels, or images.  Images that need more points than a basis has go in tiles
(overlap-save); of backward_weights the products of tiles are summed before the transform back.  Points and kind of
product are the strategy (strategies.py); where spectra lie, and which of them passes share, spectra.py says.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydtconv import dtypes
from pydtconv.conv.problem import ConvProblem
from pydtconv.kernels.base import Call, sequence
from pydtconv.kernels.gpu.convolutions.algorithm import Kept, Work
from pydtconv.kernels.gpu.convolutions.spectra import OPERANDS, Spectra
from pydtconv.kernels.gpu.convolutions.strategies import NEAR, Layout, Strategy, Tile, default_of, fitting
from pydtconv.kernels.gpu.fourier import LENGTHS


@dataclass(frozen=True)
class Fourier:
    """Strides and dilation of 1, no groups, one or two axes.  strategy: None for that with the fewest points."""

    strategy: Strategy | None = None

    def reason(self, p: ConvProblem, direction: str) -> str | None:
        if p.rank > 2:
            return f"expected images of one or two axes, got {p.rank}"
        if {*p.strides, *p.dilation} != {1}:
            return f"expected strides and dilation of 1, got {p.strides} and {p.dilation}"
        if p.groups != 1:
            return f"expected one group, got {p.groups}"
        if max(p.kernel) > LENGTHS[-1] // 2:
            return f"expected a kernel of {LENGTHS[-1] // 2} or less, got {p.kernel}"
        if any(max(axis.before, axis.after) > axis.kernel - 1 for axis in p.axes):
            return f"expected less padding than the kernel has taps, got {p.padding}"
        if p.is_pointwise:
            return "expected more than one tap, got a pointwise convolution"
        if p.axes[-1].kernel == p.axes[-1].extent == 1:
            return "expected images of more than one column, got one"
        return None if self.strategy is None else self.strategy.reason(p, direction)

    def layout(self, p: ConvProblem, direction: str) -> Layout:
        return Layout.of(p, direction, self.strategy or default_of(p))

    def others(self, p: ConvProblem, direction: str, count: int) -> list[str]:
        """Names of strategies: of the one that "fft" has, then of those that are expected to be the fastest."""
        if self.strategy is not None:
            return []
        return [str(strategy) for strategy in _ranking(p, direction)[:count]]

    def workspace(self, p: ConvProblem, direction: str, kept: Collection[str] = ()) -> int:
        return Spectra(p, direction, self.layout(p, direction), dict.fromkeys(kept)).nbytes

    def work(self, p: ConvProblem, direction: str) -> Work:
        """Transforms move what they read, halves twice if any, and what they write; products all three spectra."""
        return _work(p, direction, self.layout(p, direction))

    def kept_elements(self, p: ConvProblem, name: str) -> int:
        """Reals of the spectra of this name that a pass leaves for another."""
        direction = next(each for each, names in OPERANDS.items() if name in names)
        return Spectra(p, direction, self.layout(p, direction)).elements(name)

    def forward(
        self, launcher: Any, p: ConvProblem, x: Any, w: Any, y: Any, workspace: Any, adds: bool, kept: Kept = None
    ) -> Call:
        spectra = Spectra(p, "forward", self.layout(p, "forward"), kept, workspace, x)
        calls = list(spectra.filters(launcher, w))
        for number, (tile_h, tile_w) in enumerate(spectra.tiles()):
            first, second = spectra.operands(number)
            calls += [
                *spectra.image(launcher, x, tile_h, tile_w, first),
                launcher.gemm_batched(first, second, spectra.product),
                *spectra.back(launcher, y, tile_h, tile_w, (0, 0), adds),
            ]
        return sequence(calls)

    def backward_data(
        self, launcher: Any, p: ConvProblem, dy: Any, w: Any, dx: Any, workspace: Any, adds: bool, kept: Kept = None
    ) -> Call:
        layout = self.layout(p, "backward_data")
        spectra = Spectra(p, "backward_data", layout, kept, workspace, dy)
        calls = list(spectra.filters(launcher, w))
        late = [axis.before if whole else axis.kernel - 1 for axis, whole in zip(p.axes[1:], layout.whole, strict=True)]
        for number, (tile_h, tile_w) in enumerate(spectra.tiles()):
            first, second = spectra.operands(number)
            calls += [
                *spectra.image(launcher, dy, tile_h, tile_w, first, conjugate=True),
                launcher.gemm_batched(first, second.transpose((0, 2, 1)), spectra.product),
                *spectra.back(launcher, dx, tile_h, tile_w, (late[0], late[1]), adds, conjugate=True),
            ]
        return sequence(calls)

    def backward_weights(
        self, launcher: Any, p: ConvProblem, x: Any, dy: Any, dw: Any, workspace: Any, kept: Kept = None
    ) -> Call:
        spectra = Spectra(p, "backward_weights", self.layout(p, "backward_weights"), kept, workspace, x)
        calls: list[Call] = []
        for number, (tile_h, tile_w) in enumerate(spectra.tiles()):
            own_h, own_w = (Tile(t.first, t.count, t.first, 0, t.count) for t in (tile_h, tile_w))
            first, second = spectra.operands(number)
            calls += [
                *spectra.image(launcher, x, tile_h, tile_w, first),
                *spectra.image(launcher, dy, own_h, own_w, second, conjugate=True, operand=1),
                launcher.gemm_batched(first.transpose((0, 2, 1)), second, spectra.product, number > 0),
            ]
        return sequence([*calls, *spectra.filters_back(launcher, dw)])


@lru_cache(maxsize=4096)
def _work(p: ConvProblem, direction: str, layout: Layout) -> Work:
    itemsize, sizes = dtypes.itemsize(p.dtype), Spectra(p, direction, layout)
    tiles = sum(1 for _ in sizes.tiles())
    points = layout.height.points * layout.width.points
    *operands, result = (rows * columns for rows, columns in sizes.shapes)
    filters = "backward_weights" if direction == "backward_weights" else "others"
    times = {"others": (tiles, 1, tiles), "backward_weights": (tiles, tiles, 1)}[filters]
    spectrum = layout.reals * layout.frequencies
    moved = sum(
        count
        * each
        * (points + (0 if layout.height.points == 1 or layout.at_once else 4 * layout.frequencies) + spectrum)
        for count, each in zip(times, (*operands, result), strict=True)
    )
    moved += tiles * spectrum * (sum(operands) + result)
    rows, inner = sizes.shapes[0]
    columns = sizes.shapes[-1][1]
    if direction == "backward_weights":
        rows, inner = inner, rows
    products = 3 if layout.gauss else 4
    return Work(2.0 * products * tiles * layout.frequencies * rows * inner * columns, float(moved * itemsize))


@lru_cache(maxsize=1024)
def _ranking(p: ConvProblem, direction: str) -> tuple[Strategy, ...]:
    """Strategies within NEAR of the best one's expected cost, the best first; that of "fft" is always among them."""
    found = {each: _work(p, direction, Layout.of(p, direction, each)).cost for each in fitting(p, direction)}
    usual, bound = default_of(p), NEAR * min(found.values())
    kept = [each for each, cost in found.items() if cost <= bound or each == usual]
    return tuple(sorted(kept, key=lambda each: (each != usual, found[each])))
