"""Arithmetic of two and more arguments with NumPy's broadcasting.

The gradient of an argument that was broadcast is summed over the axes along which it repeats.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from pydtconv._ext import elem
from pydtconv.ops.activation import activation_code, bind_unary_backward, parameters
from pydtconv.ops.base import Call, Op, Pass, Retained, Spec
from pydtconv.ops.strided import (
    adds,
    bind_copy,
    bind_reduce,
    broadcast_axes,
    broadcast_shapes,
    flat,
    kernel,
    layout,
    nothing,
    reduction_workspace,
    same_float,
    sequence,
)

BINARY = {"add": 0, "subtract": 1, "multiply": 2, "divide": 3, "maximum": 4, "minimum": 5, "power": 6, "equal": 7}


def aligned(nbytes: int) -> int:
    return -(-nbytes // 64) * 64


def reduced_workspace(spec: Spec, out: Spec) -> int:
    """Bytes to sum an array of out's shape to the shape of `spec`, which was broadcast to it."""
    if None in out.shape:
        return 0
    axes = broadcast_axes(spec.shape, out.shape)  # type: ignore[arg-type]
    return reduction_workspace(out.shape, axes, out.dtype) if axes else 0


def bind_sum_to(
    term: np.ndarray,
    dx: np.ndarray,
    workspace: np.ndarray | None,
    *,
    x2: np.ndarray | None = None,
    factor: float = 1.0,
    accumulate: bool = False,
) -> Call:
    """dx (+)= factor * term (or term * x2), summed over the axes along which dx was broadcast to term's shape."""
    axes = broadcast_axes(dx.shape, term.shape)
    if not axes:
        return bind_copy(term, dx.reshape(term.shape) if dx.ndim != term.ndim else dx, factor, accumulate)
    target = np.lib.stride_tricks.as_strided(
        dx, (1,) * (term.ndim - dx.ndim) + dx.shape, (dx.itemsize,) * (term.ndim - dx.ndim) + dx.strides
    )
    return bind_reduce("sum", axes, term, target, workspace, x2=x2, factor=factor, accumulate=accumulate)


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

    def __post_init__(self) -> None:
        activation_code(self.activation)
        if self.average and self.activation:
            raise ValueError(f"Add: expected average without an activation, got activation={self.activation!r}")
        # with an activation, backward first multiplies dy by its derivative, in place, and then hands it on
        object.__setattr__(self, "passes_dy", () if self.average else self.accumulates)
        object.__setattr__(self, "overwrites_dy", self.activation is not None)

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

    def workspace(self, direction: str, *inputs: Spec) -> int:
        out = self.infer(*inputs)
        return 0 if direction == "forward" else max(reduced_workspace(spec, out) for spec in inputs)

    def forward(self, p: Pass) -> Call:
        y = p.y[0]
        calls: list[Call] = []
        if y.size == 0:
            return nothing
        params = np.array(parameters(self.activation or "linear", self.alpha, None, None), y.dtype)
        total = kernel(elem.add_activation, y.dtype)
        # an input whose place y takes comes first, for y is written from the first addition on
        inputs = sorted(p.x, key=lambda x: x.ctypes.data != y.ctypes.data)
        left = inputs[0]
        for i, x in enumerate(inputs[1:]):
            code = activation_code(self.activation) if i == len(inputs) - 2 else 0
            calls.append(partial(total, code, params, layout(y.shape, left, x, y), flat(left), flat(x), flat(y)))
            left = y
        if len(inputs) == 1:
            code = activation_code(self.activation)
            calls.append(
                partial(
                    kernel(elem.unary_forward, y.dtype), code, params, layout(y.shape, left, y), flat(left), flat(y)
                )
            )
        if self.average and len(inputs) > 1:
            calls.append(bind_copy_in_place(y, 1 / len(inputs)))
        return sequence(calls)

    def backward(self, p: Pass) -> Call:
        dy = p.dy[0]
        calls: list[Call] = []
        if self.activation:
            params = parameters(self.activation, self.alpha, None, None)
            calls.append(bind_unary_backward(self.activation, params, p.y[0], dy, dy))
        factor = 1 / len(p.dx) if self.average else 1.0
        # the gradient that takes dy's place comes last
        wanted = sorted(
            ((i, dx) for i, dx in enumerate(p.dx) if dx is not None),
            key=lambda item: item[1].ctypes.data == dy.ctypes.data,
        )
        for i, dx in wanted:
            calls.append(bind_sum_to(dy, dx, p.workspace, factor=factor, accumulate=adds(p, i)))
        return sequence(calls)


def bind_copy_in_place(y: np.ndarray, factor: float) -> Call:
    """y *= factor."""
    return bind_copy(y, y, factor)


class _Binary(Op):
    """y = x0 op x1 with broadcasting."""

    kind: ClassVar[str] = ""
    inplace: ClassVar[tuple[int, ...]] = (0, 1)
    accumulates: ClassVar[tuple[int, ...]] = (0, 1)
    #: for the gradient of input 0 and of input 1: which of a (0), b (1), y (2) it reads
    reads: ClassVar[tuple[tuple[int, ...], tuple[int, ...]]] = ((0, 1), (0, 1))

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

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if direction == "forward":
            return 0
        out = self.infer(*inputs)
        need = [0]
        for spec in inputs:
            if spec.shape != out.shape:
                need.append(aligned(out.nbytes) + reduced_workspace(spec, out))
        return max(need)

    def forward(self, p: Pass) -> Call:
        (a, b), y = p.x, p.y[0]
        if y.size == 0:
            return nothing
        return partial(
            kernel(elem.binary_forward, y.dtype), BINARY[self.kind], layout(y.shape, a, b, y), flat(a), flat(b), flat(y)
        )

    def backward(self, p: Pass) -> Call:
        return sequence([self._gradient(p, i) for i in (0, 1) if p.dx[i] is not None])

    def _gradient(self, p: Pass, i: int) -> Call:
        dy, dx = p.dy[0], p.dx[i]
        if dy.size == 0:
            return nothing if adds(p, i) else partial(dx.fill, 0)
        operands: list[Any] = [
            p.x[0] if 0 in self.reads[i] else None,
            p.x[1] if 1 in self.reads[i] else None,
            p.y[0] if 2 in self.reads[i] else None,
        ]
        direct = dx.shape == dy.shape
        if not direct and not any(o is not None for o in operands):
            return bind_sum_to(
                dy, dx, p.workspace, factor=-1.0 if self.kind == "subtract" and i else 1.0, accumulate=adds(p, i)
            )
        other = operands[1 - i]
        if not direct and self.kind == "multiply" and other.shape == dy.shape:
            return bind_sum_to(dy, dx, p.workspace, x2=other, accumulate=adds(p, i))
        out, rest = dx, None
        if not direct:
            assert p.workspace is not None
            out = p.workspace[: dy.nbytes].view(dy.dtype).reshape(dy.shape)
            rest = p.workspace[aligned(dy.nbytes) :]
        term = partial(
            kernel(elem.binary_backward, dy.dtype),
            BINARY[self.kind],
            i,
            direct and adds(p, i),
            layout(dy.shape, dy, *operands, out),
            flat(dy),
            *map(flat, operands),
            flat(out),
        )
        return term if direct else sequence([term, bind_sum_to(out, dx, rest, accumulate=adds(p, i))])


@dataclass(frozen=True)
class Subtract(_Binary):
    """y = x0 - x1."""

    kind: ClassVar[str] = "subtract"
    reads: ClassVar[tuple[tuple[int, ...], tuple[int, ...]]] = ((), ())
    passes_dy: ClassVar[tuple[int, ...]] = (0,)


@dataclass(frozen=True)
class Multiply(_Binary):
    """y = x0 * x1."""

    kind: ClassVar[str] = "multiply"
    reads: ClassVar[tuple[tuple[int, ...], tuple[int, ...]]] = ((1,), (0,))


@dataclass(frozen=True)
class Divide(_Binary):
    """y = x0 / x1."""

    kind: ClassVar[str] = "divide"
    reads: ClassVar[tuple[tuple[int, ...], tuple[int, ...]]] = ((1,), (1, 2))


@dataclass(frozen=True)
class Maximum(_Binary):
    """y = max(x0, x1); where both are equal each gets half of the gradient."""

    kind: ClassVar[str] = "maximum"


@dataclass(frozen=True)
class Minimum(_Binary):
    """y = min(x0, x1); where both are equal each gets half of the gradient."""

    kind: ClassVar[str] = "minimum"


@dataclass(frozen=True)
class Power(_Binary):
    """y = x0 ** x1, x0 > 0 where the gradient of x1 is wanted."""

    kind: ClassVar[str] = "power"
