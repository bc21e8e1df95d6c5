"""Element-wise functions of one argument, and the bias addition (cext/cuda/elementwise.cu)."""

from __future__ import annotations

from typing import Any

from pydtconv.conv.activations import CODES
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.gpu.arrays import register
from pydtconv.kernels.gpu.columns import bind_column_sums, sums_bytes
from pydtconv.ops.activation import Activation, Bias
from pydtconv.ops.base import Spec


def bind_unary(launcher: Any, kind: str | None, params: tuple[float, float, float], x: Any, y: Any) -> Call:
    """y = f(x); y may be x."""
    arguments = (CODES[kind], *map(float, params), y.size, launcher.layout(y.shape, x, y), x, y)
    return launcher.each("elementwise.unary_forward", y.dtype, y.size, *arguments)


def bind_unary_backward(
    launcher: Any,
    kind: str,
    params: tuple[float, float, float],
    v: Any,
    dy: Any,
    dx: Any,
    accumulate: bool = False,
) -> Call:
    """dx (+)= dy f'(v), v = y or x as the kind says; dx may be dy."""
    layout = launcher.layout(dx.shape, v, dy, dx)
    arguments = (CODES[kind], *map(float, params), accumulate, dx.size, layout, v, dy, dx)
    return launcher.each("elementwise.unary_backward", dx.dtype, dx.size, *arguments)


@register(Activation)
class ActivationKernel(Kernel[Activation]):
    """dx comes from y where the kind's derivative does, else from x."""

    def forward(self, p: Pass) -> Call:
        return bind_unary(p.launcher, self.op.kind, self.op.parameters, p.x[0], p.y[0])

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return nothing
        v = p.y[0] if p.y[0] is not None else p.x[0] if p.x[0] is not None else p.dy[0]
        return bind_unary_backward(p.launcher, self.op.kind, self.op.parameters, v, p.dy[0], p.dx[0], p.adds(0))


@register(Bias)
class BiasKernel(Kernel[Bias]):
    """One pass forward; backward sums dy's rows for db."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        return sums_bytes(inputs[0]) if direction == "backward" else 0

    def forward(self, p: Pass) -> Call:
        (x, b), y, launcher = p.x, p.y[0], p.launcher
        layout = launcher.layout(y.shape, x, b, y)
        return launcher.each(
            "elementwise.add_activation", y.dtype, y.size, CODES[None], 0.0, 0.0, 0.0, y.size, layout, x, b, y
        )

    def backward(self, p: Pass) -> Call:
        dy, calls = p.dy[0], []
        if p.dx[1] is not None:
            calls.append(bind_column_sums(p.launcher, dy, p.dx[1], p.workspace, p.adds(1)))
        if p.dx[0] is not None:
            calls.append(p.launcher.copy(dy, p.dx[0], accumulate=p.adds(0)))
        return sequence(calls)
