"""The dense layer: the device's GEMM, bias, residual and activation behind it (cext/cuda/elementwise.cu)."""

from __future__ import annotations

from typing import Any

from pydtconv.conv.activations import CODES
from pydtconv.kernels.base import Call, Kernel, Pass, in_parts
from pydtconv.kernels.gpu.activation import bind_unary, bind_unary_backward
from pydtconv.kernels.gpu.arrays import register, rows_of, size_of
from pydtconv.kernels.gpu.columns import bind_column_sums, sums_bytes
from pydtconv.ops.activation import parameters
from pydtconv.ops.base import Spec
from pydtconv.ops.linear import Dense


def bind_finish(
    launcher: Any,
    y: Any,
    bias: Any,
    residual: Any,
    activation: str | None,
    alpha: float | None,
    kept: Any = None,
) -> Call:
    """y = activation(y + bias + residual), in place; kept: what the activation is applied to."""
    rows, channels, ldy = size_of(y)
    kind = activation or "linear"
    arguments = (CODES[kind], *parameters(kind, alpha, None, None), rows, channels, bias)
    ldr = 0 if residual is None else size_of(residual)[2]
    return launcher.each("elementwise.finish", y.dtype, y.size, *arguments, residual, ldr, kept, y, ldy)


@register(Dense)
class DenseKernel(Kernel[Dense]):
    """One product for each of y, dx and dw."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if direction == "forward" or self.op.bias_of(inputs) is None or None in inputs[0].shape:
            return 0
        return sums_bytes(self.op.infer(*inputs))

    def forward(self, p: Pass) -> Call:
        x, w, y = rows_of(p.x[0]), p.x[1], rows_of(p.y[0])
        bias, residual = self.op.bias_of(p.x), p.x[-1] if self.op.residual else None
        launcher, copied = p.launcher, []
        if residual is not None and residual.data.ptr == p.y[0].data.ptr:  # whose place y takes: the product adds to it
            copied, residual = [True], None
        parts = {"forward": launcher.gemm(x, w, y, accumulate=bool(copied))}
        if bias is not None or residual is not None or self.op.activation or "z" in p.saved:
            alpha, kept = self.op.alpha, p.saved.get("z")
            parts["forward_bias"] = bind_finish(launcher, y, bias, rows_of(residual), self.op.activation, alpha, kept)
        return in_parts(parts, p.run)

    def recompute(self, p: Pass) -> Call:
        if not self.op.smooth:
            return self.forward(p)
        return bind_unary(p.launcher, self.op.activation, (0.0, 0.0, 0.0), p.saved["z"], p.y[0])

    def backward(self, p: Pass) -> Call:
        dy, launcher, parts = rows_of(p.dy[0]), p.launcher, {}
        db = self.op.bias_of(p.dx)
        if self.op.activation:
            v = rows_of(p.saved["z"] if self.op.smooth else p.y[0])
            params = parameters(self.op.activation, self.op.alpha, None, None)
            parts["backward_activation"] = bind_unary_backward(launcher, self.op.activation, params, v, dy, dy)
        if db is not None:
            parts["backward_bias"] = bind_column_sums(launcher, dy, db, p.workspace, p.adds(2))
        if p.dx[0] is not None:
            parts["backward_data"] = launcher.gemm(dy, p.x[1].T, rows_of(p.dx[0]), p.adds(0))
        if p.dx[1] is not None:
            parts["backward_weights"] = launcher.gemm(rows_of(p.x[0]).T, dy, p.dx[1], p.adds(1))
        return in_parts(parts, p.run)

    def backward_rows(self, p: Pass, rows: slice) -> Call:
        dw = p.launcher.gemm(rows_of(p.x[0])[:, rows].T, rows_of(p.dy[0]), p.dx[1])
        return in_parts({"backward_weights": dw}, p.run)
