"""Sums, means and extrema over axes.

Sums are formed in blocks, so that the error does not grow with the length (cext/nn/reduce.c).  Where several
elements are the largest (smallest), they share the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.ops.base import Op, Reasons, Retained, Spec, functions
from pydtconv.ops.checks import normalize_axes, same_float
from pydtconv.ops.gradients import spread

__all__ = ["ArgMax", "Max", "Mean", "Min", "Sum"]

Axes = int | Sequence[int] | None


@dataclass(frozen=True)
class Reduction(Op):
    axis: int | tuple[int, ...] | None = None
    keepdims: bool = False

    kind: ClassVar[str] = "sum"
    accumulates: ClassVar[tuple[int, ...]] = (0,)
    mesh: ClassVar[str] = "reduction"

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


@dataclass(frozen=True)
class Sum(Reduction):
    """y = sum of x over `axis` (None: all)."""

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [spread(dy, x[0].shape, self.axes(len(x[0].shape)))]


@dataclass(frozen=True)
class Mean(Reduction):
    """y = mean of x over `axis` (None: all)."""

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        axes = self.axes(len(x[0].shape))
        return [spread(dy / float(math.prod(x[0].shape[i] for i in axes)), x[0].shape, axes)]


class Extremum(Reduction):
    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(0,), y=(0,))

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        axes = self.axes(len(x[0].shape))
        equal = functions.equal(x[0], spread(y, x[0].shape, axes))
        count = functions.sum(functions.cast(equal, dy.dtype), axis=axes, keepdims=True)
        return [functions.where(equal, spread(dy, x[0].shape, axes) / count, 0.0)]


@dataclass(frozen=True)
class Max(Extremum):
    """y = the largest of x over `axis` (None: all)."""

    kind: ClassVar[str] = "maximum"


@dataclass(frozen=True)
class Min(Extremum):
    """y = the smallest of x over `axis` (None: all)."""

    kind: ClassVar[str] = "minimum"


@dataclass(frozen=True)
class ArgMax(Op):
    """y = int32 index of the first largest element along `axis`; without gradient."""

    axis: int = -1
    keepdims: bool = False

    nondifferentiable: ClassVar[tuple[int, ...]] = (0,)
    lacks: ClassVar[Reasons] = {"gradient": "it has none", "gpu": "it runs NumPy"}

    def infer(self, *inputs: Spec) -> Spec:
        shape = inputs[0].shape
        (axis,) = normalize_axes("argmax", self.axis, len(shape))
        kept = (1,) if self.keepdims else ()
        return Spec((*shape[:axis], *kept, *shape[axis + 1 :]), "int32")
