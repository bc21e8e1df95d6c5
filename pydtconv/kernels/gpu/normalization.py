"""Batch normalization (cext/cuda/columns.cu)."""

from __future__ import annotations

from typing import Any

from pydtconv import dtypes
from pydtconv.conv.activations import CODES
from pydtconv.kernels.base import Call, Kernel, Pass, sequence
from pydtconv.kernels.gpu.arrays import aligned, part, register, size_of
from pydtconv.kernels.gpu.columns import THREADS, bind_statistics, bind_totals, grid_of, sums_bytes
from pydtconv.kernels.gpu.moments import moments_in
from pydtconv.ops.base import Spec
from pydtconv.ops.normalization import FROM_INPUT, BatchNorm


@register(BatchNorm)
class BatchNormKernel(Kernel[BatchNorm]):
    """Statistics, coefficients, application; backward: sums, their totals, application."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        x = inputs[0]
        vector = (x.shape[-1] or 1) * dtypes.itemsize(x.dtype)
        return aligned(2 * vector) + sums_bytes(x, 1 if direction == "forward" else 2)

    def _apply(self, p: Pass) -> Call:
        x, y, launcher = p.x[0], p.y[0], p.launcher
        rows, channels, ldx = size_of(x)
        beta, code = self.op.beta_of(p.x), CODES[self.op.activation]
        arguments = (rows, channels, x, ldx, p.saved["mean"], p.saved["scale"], beta, code, float(self.op.alpha))
        return launcher.each("columns.normalize", x.dtype, x.size, *arguments, y, size_of(y)[2])

    def forward(self, p: Pass) -> Call:
        assert p.workspace is not None
        x, launcher, calls = p.x[0], p.launcher, []
        channels = x.shape[-1]
        gamma = p.x[1] if self.op.scale else None
        moving_mean, moving_variance = (p.x[i] for i in self.op.state)
        mean, variance = moving_mean, moving_variance
        trains = (p.training or self.op.always) and not self.op.frozen
        if trains and self.op.given:
            mean, variance = moments_in(p.x[-1])
        elif trains:
            both = part(p.workspace, 0, (2, channels), x.dtype, x.itemsize)
            mean, variance = both[0], both[1]
            rest = p.workspace[aligned(2 * channels * x.itemsize) :]
            calls.append(bind_statistics(launcher, x, mean, variance, rest))
        state = (moving_mean, moving_variance) if trains else (None, None)
        calls.append(
            launcher.each(
                "columns.normalization_scale",
                x.dtype,
                channels,
                *(channels, mean, variance, gamma, float(self.op.epsilon), float(self.op.momentum)),
                *(p.saved["mean"], p.saved["inverse"], p.saved["scale"], *state),
            )
        )
        if p.y[0] is not None:
            calls.append(self._apply(p))
        return sequence(calls)

    def recompute(self, p: Pass) -> Call:
        return self._apply(p)

    def backward(self, p: Pass) -> Call:
        assert p.workspace is not None
        x, dy, dx, launcher = p.x[0], p.dy[0], p.dx[0], p.launcher
        rows, channels, ldx = size_of(x)
        y = None if self.op.activation in FROM_INPUT else p.y[0]
        dgamma = p.dx[1] if self.op.scale else None
        dbeta = p.dx[1 + self.op.scale] if self.op.center else None
        mean, inverse, scale = p.saved["mean"], p.saved["inverse"], p.saved["scale"]
        own: tuple[Any, ...] = (x, ldx, y, 0 if y is None else size_of(y)[2], dy, size_of(dy)[2])
        common = (
            rows,
            channels,
            *own,
            mean,
            scale,
            self.op.beta_of(p.x),
            CODES[self.op.activation],
            float(self.op.alpha),
        )
        sums = part(p.workspace, 0, (2, channels), x.dtype, x.itemsize)
        calls: list[Call] = []
        if dgamma is not None or dbeta is not None or not self.op.frozen:
            grid = grid_of(launcher, rows, channels)
            rest = p.workspace[aligned(2 * channels * x.itemsize) :]
            parts = part(rest, 0, (2, grid[1], channels), x.dtype, x.itemsize)
            calls.append(launcher.launch("columns.normalization_sums", x.dtype, grid, THREADS, *common, parts))
            calls.append(bind_totals(launcher, parts, sums.reshape(-1)))
            flags = (p.adds(1), p.adds(1 + self.op.scale))
            calls.append(
                launcher.each(
                    "columns.normalization_parameters",
                    x.dtype,
                    channels,
                    channels,
                    sums,
                    inverse,
                    *flags,
                    dgamma,
                    dbeta,
                )
            )
        if dx is not None:
            given = None if self.op.frozen else sums
            last = (inverse, given, float(rows), p.adds(0), dx, size_of(dx)[2])
            calls.append(launcher.each("columns.normalization_gradient", x.dtype, x.size, *common, *last))
        return sequence(calls)
