"""Padding: copies between strided views (cext/cuda/elementwise.cu)."""

from __future__ import annotations

from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.resize import mirrored, window_of
from pydtconv.kernels.gpu.arrays import register
from pydtconv.ops.resize import Pad


@register(Pad)
class PadKernel(Kernel[Pad]):
    """Mirrored borders are copied line by line, and added back in the reverse order."""

    def forward(self, p: Pass) -> Call:
        y, launcher = p.y[0], p.launcher
        inner = launcher.copy(p.x[0], y[window_of(self.op, y.shape)])
        if self.op.mode == "constant":
            return sequence([launcher.fill(y, float(self.op.value)), inner])
        return sequence([inner, *(launcher.copy(y[source], y[copy]) for source, copy in mirrored(self.op, y.shape))])

    def backward(self, p: Pass) -> Call:
        dy, dx, launcher = p.dy[0], p.dx[0], p.launcher
        if dx is None:
            return nothing
        lines = [] if self.op.mode == "constant" else reversed(mirrored(self.op, dy.shape))
        added = [launcher.copy(dy[copy], dy[source], accumulate=True) for source, copy in lines]
        return sequence([*added, launcher.copy(dy[window_of(self.op, dy.shape)], dx, accumulate=p.adds(0))])
