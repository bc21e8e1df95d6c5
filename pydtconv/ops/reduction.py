"""Sums, means and extrema over axes.

Sums are formed in blocks, so that the error does not grow with the length (cext/nn/reduce.c).  Where several
elements are the largest (smallest), they share the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pydtconv._ext import elem
from pydtconv.ops.arithmetic import BINARY, aligned
from pydtconv.ops.base import Call, Op, Pass, Retained, Spec
from pydtconv.ops.strided import (
    adds,
    bind_copy,
    bind_reduce,
    flat,
    kernel,
    layout,
    normalize_axes,
    nothing,
    reduction_workspace,
    same_float,
    sequence,
)

Axes = int | Sequence[int] | None


def with_axes(y: np.ndarray, axes: Sequence[int], rank: int) -> np.ndarray:
    """A view of y with the reduced axes put back as 1."""
    if y.ndim == rank:
        return y
    rest = iter(zip(y.shape, y.strides, strict=True))
    dims = [(1, y.itemsize) if d in axes else next(rest) for d in range(rank)]
    return as_strided(y, [n for n, _ in dims], [s for _, s in dims])


@dataclass(frozen=True)
class _Reduction(Op):
    axis: int | tuple[int, ...] | None = None
    keepdims: bool = False

    kind: ClassVar[str] = "sum"
    accumulates: ClassVar[tuple[int, ...]] = (0,)

    def __post_init__(self) -> None:
        if self.axis is not None and not isinstance(self.axis, int):
            object.__setattr__(self, "axis", tuple(self.axis))

    def axes(self, rank: int) -> tuple[int, ...]:
        return normalize_axes(self.name, self.axis, rank)

    def infer(self, *inputs: Spec) -> Spec:
        dtype = same_float(self.name, *inputs)
        shape = inputs[0].shape
        axes = self.axes(len(shape))
        if self.keepdims:
            return Spec(tuple(1 if d in axes else n for d, n in enumerate(shape)), dtype)
        return Spec(tuple(n for d, n in enumerate(shape) if d not in axes), dtype)

    def workspace(self, direction: str, *inputs: Spec) -> int:
        shape = inputs[0].shape
        return reduction_workspace(shape, self.axes(len(shape)), inputs[0].dtype) if direction == "forward" else 0

    def factor(self, x: np.ndarray) -> float:
        return 1.0

    def forward(self, p: Pass) -> Call:
        x = p.x[0]
        axes = self.axes(x.ndim)
        y = with_axes(p.y[0], axes, x.ndim)
        if not axes:
            return bind_copy(x, y)
        return bind_reduce(self.kind, axes, x, y, p.workspace, factor=self.factor(x))

    def backward(self, p: Pass) -> Call:
        dx = p.dx[0]
        if dx is None:
            return nothing
        dy = with_axes(p.dy[0], self.axes(dx.ndim), dx.ndim)
        return bind_copy(dy, dx, self.factor(dx), adds(p, 0))


@dataclass(frozen=True)
class Sum(_Reduction):
    """y = sum of x over `axis` (None: all)."""


@dataclass(frozen=True)
class Mean(_Reduction):
    """y = mean of x over `axis` (None: all)."""

    def factor(self, x: np.ndarray) -> float:
        return 1 / max(1, math.prod(x.shape[d] for d in self.axes(x.ndim)))


class _Extremum(_Reduction):
    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(0,), y=(0,))

    def workspace(self, direction: str, *inputs: Spec) -> int:
        x = inputs[0]
        axes = self.axes(len(x.shape))
        reducing = reduction_workspace(x.shape, axes, x.dtype)
        if direction == "forward" or None in x.shape:
            return reducing
        return aligned(x.nbytes) + aligned(self.infer(x).nbytes) + reducing

    def backward(self, p: Pass) -> Call:
        """dx (+)= mask * (dy / count), mask = (x == y), count = sum of the mask."""
        x, dx, ws = p.x[0], p.dx[0], p.workspace
        if dx is None or x.size == 0:
            return nothing
        assert ws is not None
        axes = self.axes(x.ndim)
        y, dy = (with_axes(a, axes, x.ndim) for a in (p.y[0], p.dy[0]))
        mask = ws[: x.nbytes].view(x.dtype).reshape(x.shape)
        rest = ws[aligned(x.nbytes) :]
        share = rest[: dy.nbytes].view(x.dtype).reshape(dy.shape)
        binary = kernel(elem.binary_forward, x.dtype)
        gradient = kernel(elem.binary_backward, x.dtype)
        return sequence(
            [
                partial(binary, BINARY["equal"], layout(x.shape, x, y, mask), flat(x), flat(y), flat(mask)),
                bind_reduce("sum", axes, mask, share, rest[aligned(dy.nbytes) :]) if axes else bind_copy(mask, share),
                partial(
                    binary, BINARY["divide"], layout(dy.shape, dy, share, share), flat(dy), flat(share), flat(share)
                ),
                partial(
                    gradient,
                    BINARY["multiply"],
                    0,
                    adds(p, 0),
                    layout(x.shape, mask, None, share, None, dx),
                    flat(mask),
                    None,
                    flat(share),
                    None,
                    flat(dx),
                ),
            ]
        )


@dataclass(frozen=True)
class Max(_Extremum):
    """y = the largest of x over `axis` (None: all)."""

    kind: ClassVar[str] = "maximum"


@dataclass(frozen=True)
class Min(_Extremum):
    """y = the smallest of x over `axis` (None: all)."""

    kind: ClassVar[str] = "minimum"


@dataclass(frozen=True)
class ArgMax(Op):
    """y = int64 index of the first largest element along `axis`; without gradient."""

    axis: int = -1
    keepdims: bool = False

    nondifferentiable: ClassVar[tuple[int, ...]] = (0,)

    def infer(self, *inputs: Spec) -> Spec:
        shape = inputs[0].shape
        (axis,) = normalize_axes("argmax", self.axis, len(shape))
        kept = (1,) if self.keepdims else ()
        return Spec((*shape[:axis], *kept, *shape[axis + 1 :]), "int64")

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]

        def run() -> None:
            np.argmax(x, axis=self.axis, out=y, keepdims=self.keepdims)

        return run

    def backward(self, p: Pass) -> Call:
        return nothing
