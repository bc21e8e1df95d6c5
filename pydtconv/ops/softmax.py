"""Softmax and its logarithm along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.ops.base import Op, Retained, Spec, functions
from pydtconv.ops.checks import check_axis, check_float

__all__ = ["LogSoftmax", "Softmax"]


@dataclass(frozen=True)
class Softmax(Op):
    """y = exp(x) / sum(exp(x)) along `axis`, computed from x - max(x).  dx = y * (dy - sum(dy * y))."""

    axis: int = -1

    inplace = (0,)
    inplace_backward = (0,)
    accumulates = (0,)
    mesh: ClassVar[str] = "along_axis"

    @property
    def dense(self) -> bool:  # type: ignore[override]
        return self.axis != -1

    def infer(self, *inputs: Spec) -> Spec:
        (x,) = inputs
        check_float(type(self).__name__, "x", x.dtype)
        check_axis(type(self).__name__, self.axis, len(x.shape))
        return x

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(y=(0,))

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [y * (dy - functions.sum(dy * y, axis=self.axis, keepdims=True))]


@dataclass(frozen=True)
class LogSoftmax(Softmax):
    """y = x - max(x) - log(sum(exp(x - max(x)))) along `axis`.  dx = dy - exp(y) * sum(dy)."""

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [dy - functions.exp(y) * functions.sum(dy, axis=self.axis, keepdims=True)]
