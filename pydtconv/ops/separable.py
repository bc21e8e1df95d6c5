"""`Separable`: a matrix multiplied along each of some axes: images resized, smoothed, and their slopes.

In each row of such a matrix a few numbers that are not 0 lie side by side: a `Band`.  A filter is a kind of BANDS and
its settings, from which the matrix of an axis follows with the axis's extent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pydtconv.extents import check
from pydtconv.ops.base import Op, Spec, functions
from pydtconv.ops.checks import same_float

__all__ = ["Separable"]

#: kind and settings
Filter = tuple[Any, ...]


class Band(NamedTuple):
    """A matrix (rows, extent): row i has counts[i] numbers from column starts[i] on, weights[i] (of rows, width)."""

    extent: int
    weights: np.ndarray
    starts: np.ndarray
    counts: np.ndarray

    @property
    def same(self) -> tuple[int, int]:
        """The most rows, from and to, each of which is the one before it a column further on."""
        follows = (np.diff(self.starts) == 1) & (np.diff(self.counts) == 0)
        follows &= (self.weights[1:] == self.weights[:-1]).all(1)
        ends = np.flatnonzero(~np.concatenate([[False], follows, [False]]))
        longest = np.diff(ends).argmax()
        return int(ends[longest]), int(ends[longest + 1])

    @property
    def matrix(self) -> np.ndarray:
        """All numbers, (rows, extent)."""
        found = np.zeros((len(self.starts), self.extent))
        for row, weights, start, count in zip(found, self.weights, self.starts, self.counts, strict=True):
            row[start : start + count] = weights[:count]
        return found


def banded(matrix: np.ndarray) -> Band:
    """The band of a matrix."""
    rows, extent = matrix.shape
    some = matrix != 0
    starts = some.argmax(1)
    counts = np.where(some.any(1), extent - some[:, ::-1].argmax(1) - starts, 0)
    columns = np.arange(max(counts.max(initial=1), 1))
    weights = matrix[np.arange(rows)[:, None], np.minimum(starts[:, None] + columns, extent - 1)]
    return Band(extent, np.where(columns < counts[:, None], weights, 0), starts, counts)


# -- kinds of filters


def _triangle(x: Any) -> Any:
    return functions.maximum(1 - x, 0.0)


def _cubic(x: Any) -> Any:
    """Keys's kernel (IEEE TASSP 1981), a = -1/2: as in Keras on TensorFlow and JAX."""
    inner = (1.5 * x - 2.5) * x * x + 1
    outer = ((2.5 - 0.5 * x) * x - 4) * x + 2
    return functions.where(x < 1, inner, functions.where(x < 2, outer, 0.0))


def _lanczos(radius: int) -> Callable[[Any], Any]:
    return lambda x: functions.where(x < radius, functions.sinc(x) * functions.sinc(x / radius), 0.0)


#: interpolation by name: the weight of a pixel by its distance
_KERNELS: dict[str, Callable[[Any], Any]] = {
    "linear": _triangle,
    "cubic": _cubic,
    "bicubic": _cubic,
    "lanczos3": _lanczos(3),
    "lanczos5": _lanczos(5),
}


def moved(extent: int, size: int, scale: Any, translation: Any, method: str, antialias: bool) -> Any:
    """The matrix (size, extent) of x * scale + translation: nothing from outside; weights of a pixel have the sum 1.

    scale, translation: numbers, or tensors of none.  antialias: where images shrink, a pixel is made of all that it
    covers.
    """
    kernel = _KERNELS[method]
    centre = (np.arange(size) + 0.5 - translation) / scale - 0.5
    wide = max if isinstance(scale, float) else functions.maximum
    stretch = wide(1 / scale, 1.0) if antialias else 1.0
    weights = kernel(abs(centre[:, None] - np.arange(extent)) / stretch)
    total = functions.sum(weights, 1, keepdims=True)
    weights = functions.where(abs(total) > 1e-4, weights / functions.where(abs(total) > 0, total, 1.0), 0.0)
    inside = (centre >= -0.5) & (centre <= extent - 0.5)
    return functions.where(inside[:, None], weights, 0.0)


def _moved(extent: int, *settings: Any) -> Band:
    return banded(np.asarray(moved(extent, *settings)))


def _resized(extent: int, size: int, interpolation: str, antialias: bool) -> Band:
    """Centres of pixels correspond."""
    if interpolation != "nearest":
        return _moved(extent, size, size / extent, 0.0, interpolation, antialias)
    starts = np.minimum(np.floor((np.arange(size) + 0.5) * extent / size).astype(int), extent - 1)
    return Band(extent, np.ones((size, 1)), starts, np.ones_like(starts))


def _filtered(extent: int, weights: Sequence[float]) -> Band:
    """A correlation with a vector, zeros outside."""
    taps = len(weights)
    first = np.arange(extent) - taps // 2
    starts = np.clip(first, 0, extent - 1)
    counts = np.clip(np.minimum(first + taps, extent) - starts, 0, None)
    places = (starts - first)[:, None] + np.arange(max(counts.max(), 1))
    return Band(extent, np.array(weights)[np.minimum(places, taps - 1)], starts, counts)


#: by kind: the band of an extent and settings
BANDS: dict[str, Callable[..., Band]] = {"resize": _resized, "move": _moved, "filter": _filtered}


def band_of(extent: int, filter: Filter, transposed: bool) -> Band:
    """The band of a filter for an extent, or that of the transposed matrix."""
    kind, *settings = filter
    band = BANDS[kind](extent, *settings)
    return banded(band.matrix.T) if transposed else band


@dataclass(frozen=True)
class Separable(Op):
    """x multiplied by the matrix of a filter along each of `axes`.

    extents: None, or those along `axes` of the result of the transposed matrices, by which x is multiplied then.
    """

    axes: tuple[int, ...]
    filters: tuple[Filter, ...]
    extents: tuple[int, ...] | None = None

    accumulates: ClassVar[tuple[int, ...]] = (0,)
    dense: ClassVar[bool] = True
    extent_fields: ClassVar[tuple[str, ...]] = ("extents",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", tuple(self.axes))
        frozen = tuple((kind, *(tuple(s) if isinstance(s, list) else s for s in rest)) for kind, *rest in self.filters)
        object.__setattr__(self, "filters", frozen)
        object.__setattr__(self, "extents", None if self.extents is None else tuple(self.extents))
        if any(each[0] not in BANDS for each in frozen):
            raise ValueError(f"Separable: expected filters of kinds {', '.join(BANDS)}, got {self.filters!r}")
        for kind, size, *_ in frozen:
            check("Separable: size", len(size) if kind == "filter" else size, least=1)
        if not len(set(self.axes)) == len(frozen) == len(self.extents or frozen) > 0:
            raise ValueError(f"Separable: expected a filter for each of axes {self.axes}, got {self.filters!r}")

    def infer(self, *inputs: Spec) -> Spec:
        same_float("Separable", *inputs)
        shape = list(inputs[0].shape)
        for i, (axis, (kind, *settings)) in enumerate(zip(self.axes, self.filters, strict=True)):
            if not 0 <= axis < len(shape):
                raise ValueError(f"Separable: axes: expected some of {len(shape)}, got {self.axes}")
            if self.extents is not None:
                shape[axis] = self.extents[i]
            elif kind != "filter":
                shape[axis] = settings[0]
        return Spec(tuple(shape), inputs[0].dtype)

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Any:
        extents = None if self.extents is not None else tuple(x[0].shape[axis] for axis in self.axes)
        return [Separable(self.axes, self.filters, extents)(dy)]
