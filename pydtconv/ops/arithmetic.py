"""Arithmetic of two and more arguments with NumPy's broadcasting.

The gradient of an argument that was broadcast is summed over the axes along which it repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.ops.activation import check_fusable
from pydtconv.ops.base import Op, Retained, Spec, functions
from pydtconv.ops.checks import broadcast_shapes, same_float
from pydtconv.ops.gradients import unbroadcast

__all__ = ["Add", "Divide", "Maximum", "Minimum", "Multiply", "Power", "Subtract"]


@dataclass(frozen=True)
class Add(Op):
    """y = f(x0 + x1 + ...), f a fused activation; any number of inputs that broadcast together.

    average: divide by the number of inputs (before no activation: the two exclude each other).
    """

    activation: str | None = None
    alpha: float | None = None
    average: bool = False

    inplace: ClassVar[tuple[int, ...]] = (0, 1)
    inplace_backward: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[tuple[int, ...]] = tuple(range(256))
    mesh: ClassVar[str] = "elementwise"

    def __post_init__(self) -> None:
        check_fusable(self.activation)
        if self.average and self.activation:
            raise ValueError(f"Add: expected average without an activation, got activation={self.activation!r}")
        # with an activation, backward first multiplies dy by its derivative, in place, and then hands it on
        object.__setattr__(self, "passes_dy", () if self.average else self.accumulates)
        object.__setattr__(self, "overwrites_dy", self.activation is not None)
        object.__setattr__(self, "takes_activation", not self.average)

    @property
    def name(self) -> str:
        return "average" if self.average else "add"

    def infer(self, *inputs: Spec) -> Spec:
        if not inputs:
            raise ValueError(f"{self.name}: expected at least one input, got none")
        dtype = same_float(self.name, *inputs)
        return Spec(broadcast_shapes(self.name, *(spec.shape for spec in inputs)), dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(y=(0,)) if self.activation else Retained()

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        g = dy / float(len(x)) if self.average else dy
        return [unbroadcast(g, each.shape) for each in x]


class Binary(Op):
    """y = x0 op x1 with broadcasting."""

    kind: ClassVar[str] = ""
    inplace: ClassVar[tuple[int, ...]] = (0, 1)
    accumulates: ClassVar[tuple[int, ...]] = (0, 1)
    #: for the gradient of input 0 and of input 1: which of a (0), b (1), y (2) it reads
    reads: ClassVar[tuple[tuple[int, ...], tuple[int, ...]]] = ((0, 1), (0, 1))
    mesh: ClassVar[str] = "elementwise"

    @property
    def name(self) -> str:
        return self.kind

    def infer(self, *inputs: Spec) -> Spec:
        if len(inputs) != 2:
            raise ValueError(f"{self.kind}: expected two inputs, got {len(inputs)}")
        dtype = same_float(self.kind, *inputs)
        return Spec(broadcast_shapes(self.kind, *(spec.shape for spec in inputs)), dtype)

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        read = {operand for i in (0, 1) if needs[i] for operand in self.reads[i]}
        return Retained(x=tuple(sorted(read & {0, 1})), y=(0,) if 2 in read else ())


@dataclass(frozen=True)
class Subtract(Binary):
    """y = x0 - x1."""

    kind: ClassVar[str] = "subtract"
    onnx: ClassVar[str] = "Sub"
    reads: ClassVar[tuple[tuple[int, ...], tuple[int, ...]]] = ((), ())
    passes_dy: ClassVar[tuple[int, ...]] = (0,)

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [unbroadcast(dy, x[0].shape), unbroadcast(-dy, x[1].shape)]


@dataclass(frozen=True)
class Multiply(Binary):
    """y = x0 * x1."""

    kind: ClassVar[str] = "multiply"
    onnx: ClassVar[str] = "Mul"
    reads: ClassVar[tuple[tuple[int, ...], tuple[int, ...]]] = ((1,), (0,))

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [unbroadcast(dy * x[1], x[0].shape), unbroadcast(dy * x[0], x[1].shape)]


@dataclass(frozen=True)
class Divide(Binary):
    """y = x0 / x1."""

    kind: ClassVar[str] = "divide"
    onnx: ClassVar[str] = "Div"
    reads: ClassVar[tuple[tuple[int, ...], tuple[int, ...]]] = ((1,), (1, 2))

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        return [unbroadcast(dy / x[1], x[0].shape), unbroadcast(-(dy * y) / x[1], x[1].shape)]


class Chosen(Binary):
    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        mine = functions.where(functions.equal(x[0], x[1]), 0.5 * dy, dy)
        return [unbroadcast(functions.where(functions.equal(each, y), mine, 0.0), each.shape) for each in x]


@dataclass(frozen=True)
class Maximum(Chosen):
    """y = max(x0, x1); where both are equal each gets half of the gradient."""

    kind: ClassVar[str] = "maximum"
    onnx: ClassVar[str] = "Max"


@dataclass(frozen=True)
class Minimum(Chosen):
    """y = min(x0, x1); where both are equal each gets half of the gradient."""

    kind: ClassVar[str] = "minimum"
    onnx: ClassVar[str] = "Min"


@dataclass(frozen=True)
class Power(Binary):
    """y = x0 ** x1, x0 > 0 where the gradient of x1 is wanted."""

    kind: ClassVar[str] = "power"
    onnx: ClassVar[str] = "Pow"

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        base, exponent = x
        where, equal = functions.where, functions.equal
        flat = equal(exponent, 0.0)  # 0^-1 is no number
        first = where(flat, 0.0, dy * exponent * functions.power(base, where(flat, 0.0, exponent - 1.0)))
        none = equal(base, 0.0)  # whose logarithm is none
        second = where(none, 0.0, dy * y * functions.log(where(none, 1.0, base)))
        return [unbroadcast(first, base.shape), unbroadcast(second, exponent.shape)]
