"""Padding and upsampling: copies between strided views (cext/cuda/elementwise.cu), and bands (bands.cu)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.resize import mirrored, window_of
from pydtconv.kernels.gpu.arrays import register
from pydtconv.kernels.gpu.separable import Step, bands_bytes, bind_bands
from pydtconv.ops.base import Spec
from pydtconv.ops.resize import Pad, Upsample
from pydtconv.ops.separable import band_of


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


@register(Upsample)
class UpsampleKernel(Kernel[Upsample]):
    """Nearest: a copy to a view with repeated pixels.  Bilinear, and backward: a band along each axis."""

    def _steps(self, source: Sequence[Any], results: Sequence[Any], forward: bool) -> list[Step]:
        kind = "nearest" if self.op.interpolation == "nearest" else "linear"
        shape, found = list(source), []
        for axis, extent in enumerate((source if forward else results)[1:-1], 1):
            band = band_of(extent, ("resize", extent * self.op.size[axis - 1], kind, False), not forward)
            shape[axis] = results[axis]
            found.append(Step(axis, band, tuple(shape)))
        return found

    def workspace(self, direction: str, *inputs: Spec) -> int:
        shape, forward = inputs[0].shape, direction == "forward"
        if None in shape or (forward and self.op.interpolation == "nearest"):
            return 0
        y = self.op.infer(*inputs).shape
        return bands_bytes(self._steps(*((shape, y) if forward else (y, shape)), forward), inputs[0].dtype)

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        if x.size == 0:
            return nothing
        if self.op.interpolation == "bilinear":
            return bind_bands(p.launcher, self._steps(x.shape, y.shape, True), x, y, False, p.workspace)
        apart = x[(slice(None), *(slice(None), None) * len(self.op.size))]
        pairs = (n for pair in zip(x.shape[1:-1], self.op.size, strict=True) for n in pair)
        return p.launcher.copy(apart, y.reshape((y.shape[0], *pairs, y.shape[-1])))

    def backward(self, p: Pass) -> Call:
        dy, dx = p.dy[0], p.dx[0]
        if dx is None or dx.size == 0:
            return nothing
        return bind_bands(p.launcher, self._steps(dy.shape, dx.shape, False), dy, dx, p.adds(0), p.workspace)
