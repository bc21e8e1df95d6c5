"""Transposed convolution: the passes of a convolution, each in another's place."""

from __future__ import annotations

from collections.abc import Callable

from pydtconv._ext import conv as ext
from pydtconv.conv.activations import FUSED
from pydtconv.conv.arrays import as_planes, pixel_stride
from pydtconv.conv.bound_passes import bind
from pydtconv.conv.selection import workspace_bytes
from pydtconv.kernels.base import Call, Pass
from pydtconv.kernels.cpu.convolution import ConvBaseKernel
from pydtconv.kernels.cpu.in_order import in_order
from pydtconv.kernels.registry import IMAGES, register
from pydtconv.ops.convolution_transpose import ConvTranspose


@register(ConvTranspose, dtypes=IMAGES)
class ConvTransposeKernel(ConvBaseKernel[ConvTranspose]):
    """forward is backward_data, backward_data is forward, backward_weights has its images exchanged."""

    def forward(self, p: Pass) -> Call:
        problem = self._problem_of(p.x[0], p.x[1])
        name = self._algorithm(problem, "backward_data")
        y, bias = p.y[0], p.x[2] if len(p.x) > 2 else None
        calls: dict[str, Callable[..., int]] = {"forward": bind(problem, "backward_data", name, y, p.x[1], p.x[0])}
        code, alpha, ldy = FUSED[self.op.activation], self.op.alpha, pixel_stride(y, "y")
        if code or bias is not None:
            image = as_planes(y)
            calls["forward_bias"] = lambda workspace: ext.bias_forward(image, ldy, bias, code, alpha)
        return in_order(calls, p, workspace_bytes(problem, "backward_data", name))

    def backward(self, p: Pass) -> Call:
        dy, dx, dw = p.dy[0], p.dx[0], p.dx[1]
        calls, need = self._finish_backward(p, dy)
        if dw is not None:
            calls["backward_weights"], more = self._weights(p)
            need = max(need, more)
        if dx is not None:
            problem = self._problem_of(dx, p.x[1])
            name = self._algorithm(problem, "forward")
            calls["backward_data"] = bind(problem, "forward", name, dy, p.x[1], dx)
            need = max(need, workspace_bytes(problem, "forward", name))
        return in_order(calls, p, need)

    def _weights(self, p: Pass) -> tuple[Callable[..., int], int]:
        problem = self._problem_of(p.x[0], p.dx[1])
        name = self._algorithm(problem, "backward_weights")
        call = bind(problem, "backward_weights", name, p.dy[0], p.dx[1], p.x[0])
        return call, workspace_bytes(problem, "backward_weights", name)

    @property
    def works_in_blocks(self) -> bool:
        return False
