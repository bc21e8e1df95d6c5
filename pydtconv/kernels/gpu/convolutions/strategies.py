"""Strategies of the convolution in the Fourier domain: points of the transforms, tiles, and how spectra are multiplied.

"fft 32x16 gauss" transforms tiles of 32 rows and 16 columns and multiplies by three real products (Gauss), "fft 32x16
complex" by complex ones, which BLAS does by four.  Where the points suffice for all results of an axis, it is one tile.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from pydtconv.conv.problem import Axis, ConvProblem
from pydtconv.kernels.gpu.fourier import LENGTHS
from pydtconv.kernels.gpu.fourier_planes import serves

PRODUCTS = ("gauss", "complex")
#: so many times the best one's expected time is too long for a strategy to be tried
NEAR = 2.0


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


def basis_of(kernel: int, *results: int) -> Basis:
    """The basis with the fewest points over all tiles; of equal ones the largest.

    results: of a pass, or of several that are to have one basis.
    """
    if kernel == max(results) == 1:
        return Basis(1, 1)
    fitting = [n for n in LENGTHS if n >= kernel]
    tiles = {n: sum(-(-each // (n - kernel + 1)) for each in results) for n in fitting}
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


def results_of(axis: Axis, direction: str) -> int:
    """Results of a pass along an axis, which tiles are made for: of backward_weights those of dy."""
    extent: int = axis.extent if direction == "backward_data" else axis.out
    return extent


@dataclass(frozen=True)
class Strategy:
    """Points of the transforms along height and width, and the kind of product, of PRODUCTS."""

    height: int
    width: int
    products: str = "gauss"

    def __str__(self) -> str:
        return f"fft {self.height}x{self.width} {self.products}"

    def reason(self, p: ConvProblem, direction: str) -> str | None:
        """Why it does not serve a pass; None where it does."""
        for axis, points in zip(p.axes[1:], (self.height, self.width), strict=True):
            if points < axis.kernel or (points == 1 and results_of(axis, direction) > 1):
                return f"a basis of {self.height}x{self.width} points does not hold {p.kh}x{p.kw} filters"
            if points > 1 and axis.kernel == results_of(axis, direction) == 1:
                return f"a basis of {self.height}x{self.width} points is of two axes, the image has one"
        return None


def read(name: str) -> Strategy | None:
    """The strategy that a name of an algorithm says ("fft 16x16": by Gauss's products); None where it says none."""
    found = re.fullmatch(r"fft ([1-9]\d{0,2})x([1-9]\d{0,2})(?: (gauss|complex))?", name)
    if not found:
        return None
    height, width = int(found[1]), int(found[2])
    if any(n not in (1, *LENGTHS) for n in (height, width)):
        return None
    return Strategy(height, width, found[3] or "gauss")


@lru_cache(maxsize=1024)
def default_of(p: ConvProblem) -> Strategy:
    """The strategy of "fft" where none has been measured: the fewest points over all three passes, which so can share
    what they transform, and Gauss's products.
    """
    height, width = (basis_of(axis.kernel, axis.out, axis.extent, axis.out).points for axis in p.axes[1:])
    return Strategy(height, width)


def fitting(p: ConvProblem, direction: str) -> list[Strategy]:
    """All strategies of a pass: lengths up to those that need one tile."""
    found = []
    for axis in p.axes[1:]:
        results = results_of(axis, direction)
        if axis.kernel == results == 1:
            found.append([1])
            continue
        lengths = [n for n in LENGTHS if n >= axis.kernel]
        whole = next((n for n in lengths if n >= results + axis.kernel - 1), lengths[-1])
        found.append([n for n in lengths if n <= whole])
    return [Strategy(height, width, products) for height, width, products in product(found[0], found[1], PRODUCTS)]


@dataclass(frozen=True)
class Layout:
    """The transforms of one pass: bases of height and width, frequencies of a tile, and whether products are Gauss's.

    whole: by axis, whether there is one tile.
    """

    height: Basis
    width: Basis
    gauss: bool
    whole: tuple[bool, bool]

    @classmethod
    def of(cls, p: ConvProblem, direction: str, strategy: Strategy) -> Layout:
        axes, points = p.axes[1:], (strategy.height, strategy.width)
        height, width = (Basis(n, n - axis.kernel + 1) for axis, n in zip(axes, points, strict=True))
        whole = [b.results >= results_of(axis, direction) for axis, b in zip(axes, (height, width), strict=True)]
        return cls(height, width, strategy.products == "gauss", (whole[0], whole[1]))

    @property
    def at_once(self) -> bool:
        """Whether one kernel transforms both axes of images and filters, whose channels lie together."""
        return serves(self.height.points, self.width.points, "float32", False)

    @property
    def columns(self) -> int:
        """Frequencies along the width."""
        return self.width.points // 2 + 1

    @property
    def frequencies(self) -> int:
        return self.columns * self.height.points

    @property
    def reals(self) -> int:
        """Real numbers of a frequency."""
        return 3 if self.gauss else 2
