"""Arithmetic of two and more arguments (cext/cuda/elementwise.cu); gradients of what was broadcast are summed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pydtconv.conv.activations import CODES
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.arithmetic import BINARY
from pydtconv.kernels.cpu.strided import broadcast_axes
from pydtconv.kernels.gpu.activation import bind_unary, bind_unary_backward
from pydtconv.kernels.gpu.arrays import aligned, part, register
from pydtconv.ops.activation import parameters
from pydtconv.ops.arithmetic import Add, Binary, Divide, Maximum, Minimum, Multiply, Power, Subtract
from pydtconv.ops.base import Spec


def grouped(launcher: Any, x: Any, axes: Sequence[int], small: Any) -> tuple[int, int, Any, Any]:
    """How reduction.cu takes an array and its reduction over axes: results, elements of each, and both layouts."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    turned = x.transpose((*kept, *axes))
    target = small.reshape(tuple(x.shape[axis] for axis in kept))
    inputs, results = (launcher.offsets(of.shape, of) for of in (turned, target))
    return math.prod(target.shape), math.prod(x.shape[axis] for axis in axes), inputs, results


def bind_sum_to(launcher: Any, term: Any, dx: Any, factor: float = 1.0, accumulate: bool = False) -> Call:
    """dx (+)= factor * term, summed over the axes along which dx was broadcast to term's shape."""
    axes = broadcast_axes(dx.shape, term.shape)
    if not axes:
        return launcher.copy(term, dx.reshape(term.shape) if dx.ndim != term.ndim else dx, factor, accumulate)
    outputs, count, inputs, results = grouped(launcher, term, axes, dx)
    arguments = (outputs, count, inputs, results, float(factor), accumulate, term, dx)
    return launcher.launch("reduction.sum", term.dtype, (outputs,), 256, *arguments) if outputs else nothing


@register(Add)
class AddKernel(Kernel[Add]):
    """Inputs are added one after the other, the activation with the last."""

    def forward(self, p: Pass) -> Call:
        y, launcher, calls = p.y[0], p.launcher, []
        kind = self.op.activation or "linear"
        params = parameters(kind, self.op.alpha, None, None)
        # an input whose place y takes comes first, for y is written from the first addition on
        inputs = sorted(p.x, key=lambda x: x.data.ptr != y.data.ptr)
        left = inputs[0]
        for i, x in enumerate(inputs[1:]):
            code = CODES[kind] if i == len(inputs) - 2 else CODES[None]
            layout = launcher.layout(y.shape, left, x, y)
            calls.append(
                launcher.each("elementwise.add_activation", y.dtype, y.size, code, *params, y.size, layout, left, x, y)
            )
            left = y
        if len(inputs) == 1:
            calls.append(bind_unary(launcher, kind, params, left, y))
        if self.op.average and len(inputs) > 1:
            calls.append(launcher.copy(y, y, 1 / len(inputs)))
        return sequence(calls)

    def backward(self, p: Pass) -> Call:
        dy, launcher, calls = p.dy[0], p.launcher, []
        if self.op.activation:
            params = parameters(self.op.activation, self.op.alpha, None, None)
            calls.append(bind_unary_backward(launcher, self.op.activation, params, p.y[0], dy, dy))
        factor = 1 / len(p.dx) if self.op.average else 1.0
        # the gradient that takes dy's place comes last
        wanted = [(i, dx) for i, dx in enumerate(p.dx) if dx is not None]
        for i, dx in sorted(wanted, key=lambda item: item[1].data.ptr == dy.data.ptr):
            calls.append(bind_sum_to(launcher, dy, dx, factor, p.adds(i)))
        return sequence(calls)


@register(Subtract, Multiply, Divide, Maximum, Minimum, Power)
class BinaryKernel(Kernel[Binary]):
    """One pass each way; the gradient of what was broadcast is summed from the workspace."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if direction == "forward":
            return 0
        out = self.op.infer(*inputs)
        return aligned(out.nbytes) if any(spec.shape != out.shape for spec in inputs) else 0

    def forward(self, p: Pass) -> Call:
        (a, b), y, launcher = p.x, p.y[0], p.launcher
        arguments = (BINARY[self.op.kind], y.size, launcher.layout(y.shape, a, b, y), a, b, y)
        return launcher.each("elementwise.binary_forward", y.dtype, y.size, *arguments)

    def backward(self, p: Pass) -> Call:
        return sequence([self._gradient(p, i) for i in (0, 1) if p.dx[i] is not None])

    def _gradient(self, p: Pass, i: int) -> Call:
        dy, dx, launcher = p.dy[0], p.dx[i], p.launcher
        reads = self.op.reads[i]
        a, b = (p.x[k] if k in reads else None for k in (0, 1))
        y = p.y[0] if 2 in reads else None
        direct = dx.shape == dy.shape
        out = dx if direct else part(p.workspace, 0, dy.shape, dy.dtype, dy.itemsize)
        operands = [dy if each is None else each for each in (a, b, y)]
        layout = launcher.layout(dy.shape, dy, *operands, out)
        arguments = (BINARY[self.op.kind], i, direct and p.adds(i), dy.size, layout, dy, a, b, y, out)
        term = launcher.each("elementwise.binary_backward", dy.dtype, dy.size, *arguments)
        return term if direct else sequence([term, bind_sum_to(launcher, out, dx, accumulate=p.adds(i))])
