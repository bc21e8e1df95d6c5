"""Arithmetic of two and more arguments, by strided loop nests (cext/nn/binary.c)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pydtconv._ext import elem
from pydtconv.conv.activations import CODES
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.activation import bind_unary_backward
from pydtconv.kernels.cpu.normalized_image import (
    AFTER_NORMALIZATION,
    bind_normalized_product,
    bind_normalized_sums,
)
from pydtconv.kernels.cpu.rows import real_of, rows_of
from pydtconv.kernels.cpu.strided import (
    bind_copy,
    bind_reduce,
    broadcast_axes,
    flat,
    layout,
    reduction_workspace,
)
from pydtconv.kernels.registry import IMAGES, register
from pydtconv.ops.activation import parameters
from pydtconv.ops.arithmetic import Add, Binary, Divide, Maximum, Minimum, Multiply, Power, Subtract
from pydtconv.ops.base import Spec, is_image

BINARY = {"add": 0, "subtract": 1, "multiply": 2, "divide": 3, "maximum": 4, "minimum": 5, "power": 6, "equal": 7}


def bind_binary(kind: str, a: np.ndarray, b: np.ndarray, y: np.ndarray) -> Call:
    """y = a op b, both broadcast to y's shape; y may be one of them."""
    call: Call = elem.bind_binary(BINARY[kind], layout(y.shape, a, b, y), flat(a), flat(b), flat(y))
    return call


def bind_binary_backward(
    kind: str, operand: int, dy: np.ndarray, given: Sequence[np.ndarray | None], out: np.ndarray, accumulate: bool
) -> Call:
    """out (+)= dy times the derivative by the operand; given: a, b and y of `bind_binary`, None for those not read.

    All are broadcast to out's shape.
    """
    places = layout(out.shape, dy, *given, out)
    call: Call = elem.bind_binary_backward(
        BINARY[kind], operand, accumulate, places, flat(dy), *map(flat, given), flat(out)
    )
    return call


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
        assert x2 is None
        return bind_copy(term, dx.reshape(term.shape) if dx.ndim != term.ndim else dx, factor, accumulate)
    target = np.lib.stride_tricks.as_strided(
        dx, (1,) * (term.ndim - dx.ndim) + dx.shape, (dx.itemsize,) * (term.ndim - dx.ndim) + dx.strides
    )
    return bind_reduce("sum", axes, term, target, workspace, x2=x2, factor=factor, accumulate=accumulate)


@register(Add, dtypes=IMAGES)
class AddKernel(Kernel[Add]):
    """Inputs are added one after the other, the activation with the last."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        out = self.op.infer(*inputs)
        return 0 if direction == "forward" else max(reduced_workspace(spec, out) for spec in inputs)

    def forward(self, p: Pass) -> Call:
        y = p.y[0]
        calls: list[Call] = []
        if y.size == 0:
            return nothing
        params = np.array(parameters(self.op.activation or "linear", self.op.alpha, None, None), real_of(y))
        # an input whose place y takes comes first, for y is written from the first addition on
        inputs = sorted(p.x, key=lambda x: x.ctypes.data != y.ctypes.data)
        left = inputs[0]
        for i, x in enumerate(inputs[1:]):
            code = CODES[self.op.activation] if i == len(inputs) - 2 else 0
            places = layout(y.shape, left, x, y)
            calls.append(elem.bind_add_activation(code, params, places, flat(left), flat(x), flat(y)))
            left = y
        if len(inputs) == 1:
            code = CODES[self.op.activation]
            calls.append(elem.bind_unary(code, params, layout(y.shape, left, y), flat(left), flat(y)))
        if self.op.average and len(inputs) > 1:
            calls.append(bind_copy_in_place(y, 1 / len(inputs)))
        return sequence(calls)

    def backward(self, p: Pass) -> Call:
        dy = p.dy[0]
        calls: list[Call] = []
        if self.op.activation:
            params = parameters(self.op.activation, self.op.alpha, None, None)
            calls.append(bind_unary_backward(self.op.activation, params, p.y[0], dy, dy))
        factor = 1 / len(p.dx) if self.op.average else 1.0
        # the gradient that takes dy's place comes last
        wanted = sorted(
            ((i, dx) for i, dx in enumerate(p.dx) if dx is not None),
            key=lambda item: item[1].ctypes.data == dy.ctypes.data,
        )
        for i, dx in wanted:
            calls.append(bind_sum_to(dy, dx, p.workspace, factor=factor, accumulate=p.adds(i)))
        return sequence(calls)


def bind_copy_in_place(y: np.ndarray, factor: float) -> Call:
    """y *= factor."""
    return bind_copy(y, y, factor)


@register(Subtract, Multiply, Divide, Maximum, Minimum, Power, dtypes=IMAGES)
class BinaryKernel(Kernel[Binary]):
    """One strided pass each way; the gradient of what was broadcast is summed, from the workspace where need be.

    An image times a number for each of its channels may be one that a normalization leaves.
    """

    def takes_prologue(self, activation: str | None, backward: bool, *inputs: Spec) -> bool:
        return self._is_per_channel(*(spec.shape for spec in inputs)) and activation in AFTER_NORMALIZATION

    def _is_per_channel(self, image: tuple[int | None, ...], factors: tuple[int | None, ...]) -> bool:
        """Whether images are multiplied by a number for each of their channels."""
        if not isinstance(self.op, Multiply) or not is_image(image):
            return False
        return factors == (image[0], *(1,) * (len(image) - 2), image[-1]) != image

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if direction == "forward":
            return 0
        out = self.op.infer(*inputs)
        need = [0]
        for spec, other in zip(inputs, reversed(inputs), strict=True):
            if spec.shape != out.shape:
                summed = isinstance(self.op, Multiply) and other.shape == out.shape  # by what sums the products
                need.append((0 if summed else aligned(out.nbytes)) + reduced_workspace(spec, out))
        return max(need)

    def forward(self, p: Pass) -> Call:
        (a, b), y = p.x, p.y[0]
        if y.size == 0:
            return nothing
        if p.prologue is not None:
            return bind_normalized_product(p.prologue, len(a), rows_of(a), rows_of(b), rows_of(y))
        return bind_binary(self.op.kind, a, b, y)

    def backward(self, p: Pass) -> Call:
        return sequence([self._gradient(p, i) for i in (0, 1) if p.dx[i] is not None])

    def _gradient(self, p: Pass, i: int) -> Call:
        dy, dx = p.dy[0], p.dx[i]
        if dy.size == 0:
            return nothing if p.adds(i) else partial(dx.fill, 0)
        if i == 1 and self._is_per_channel(dy.shape, dx.shape) and p.x[0].shape == dy.shape:
            x, adds = rows_of(p.x[0]), p.adds(i)
            return bind_normalized_sums(p.prologue, len(dy), x, rows_of(dy), rows_of(dx), accumulate=adds)
        operands: list[Any] = [
            p.x[0] if 0 in self.op.reads[i] else None,
            p.x[1] if 1 in self.op.reads[i] else None,
            p.y[0] if 2 in self.op.reads[i] else None,
        ]
        if dx.size == dy.size:  # an operand of fewer axes, where those it lacks have extent 1
            dx = dx.reshape(dy.shape)
        direct = dx.shape == dy.shape
        if not direct and not any(o is not None for o in operands):
            return bind_sum_to(
                dy, dx, p.workspace, factor=-1.0 if self.op.kind == "subtract" and i else 1.0, accumulate=p.adds(i)
            )
        other = operands[1 - i]
        if not direct and self.op.kind == "multiply" and other.shape == dy.shape:
            return bind_sum_to(dy, dx, p.workspace, x2=other, accumulate=p.adds(i))
        out, rest = dx, None
        if not direct:
            assert p.workspace is not None
            out = p.workspace[: dy.nbytes].view(dy.dtype).reshape(dy.shape)
            rest = p.workspace[aligned(dy.nbytes) :]
        term = bind_binary_backward(self.op.kind, i, dy, operands, out, direct and p.adds(i))
        return term if direct else sequence([term, bind_sum_to(out, dx, rest, accumulate=p.adds(i))])
