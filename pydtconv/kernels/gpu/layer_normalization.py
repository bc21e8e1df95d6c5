"""Layer normalization: rows by their own moments (cext/cuda/layer_normalization.cu)."""

from __future__ import annotations

import math
from typing import Any

from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.gpu.arrays import part, register, rows_of, size_of
from pydtconv.kernels.gpu.columns import THREADS, bind_totals, grid_of, sums_bytes
from pydtconv.ops.base import Spec
from pydtconv.ops.layer_normalization import LayerNorm

#: rows of so many elements and more have a block each
WIDE = 2048


@register(LayerNorm)
class LayerNormKernel(Kernel[LayerNorm]):
    """Rows of a matrix (rows, k); backward sums dgamma and dbeta over parts of the rows before it writes dx."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        shape = inputs[0].shape
        if direction == "forward" or not (self.op.scale or self.op.center) or None in shape:
            return 0
        k = Spec(shape[self.op.lead(len(shape)) :]).size
        return sums_bytes(Spec((inputs[0].size // max(k, 1), k), inputs[0].dtype), 2)

    def _matrix(self, array: Any) -> Any:
        """(rows, k)."""
        lead = self.op.lead(array.ndim)
        if lead == array.ndim - 1:
            return rows_of(array)
        return array.reshape((-1, math.prod(array.shape[lead:])))

    def _launch(self, launcher: Any, kernel: str, x: Any, *arguments: Any) -> Call:
        rows, k, _ = size_of(x)
        wide = k >= WIDE
        blocks = rows if wide else -(-rows // (THREADS // 32))
        name = f"layer_normalization.{kernel}"
        return launcher.launch(name, x.dtype, (blocks,), THREADS, wide, rows, k, self.op.rms, *arguments)

    def forward(self, p: Pass) -> Call:
        if p.x[0].size == 0:
            return nothing
        x, y = self._matrix(p.x[0]), self._matrix(p.y[0])
        gamma = p.x[1] if self.op.scale else None
        beta = p.x[1 + self.op.scale] if self.op.center else None
        arguments = (float(self.op.epsilon), x, size_of(x)[2], gamma, beta, p.saved["mean"], p.saved["inverse"])
        return self._launch(p.launcher, "forward", x, *arguments, y, size_of(y)[2])

    def backward(self, p: Pass) -> Call:
        launcher = p.launcher
        wanted = {i: p.dx[1 + i] for i in range(self.op.scale + self.op.center) if p.dx[1 + i] is not None}
        if p.x[0].size == 0:
            return sequence([launcher.fill(d, 0.0) for i, d in wanted.items() if d.size and not p.adds(1 + i)])
        x, dy = self._matrix(p.x[0]), self._matrix(p.dy[0])
        rows, k, ldx = size_of(x)
        moments, slopes = (p.saved["mean"], p.saved["inverse"]), (dy, size_of(dy)[2])
        calls: list[Call] = []
        if wanted:
            grid = grid_of(launcher, rows, k)
            parts = part(p.workspace, 0, (2, grid[1], k), x.dtype, x.itemsize)
            arguments = (rows, k, x, ldx, *moments, *slopes, parts)
            calls.append(launcher.launch("layer_normalization.parameter_sums", x.dtype, grid, THREADS, *arguments))
            for i, total in wanted.items():
                own = parts[i if self.op.scale else 1]
                calls.append(bind_totals(launcher, own, total.reshape(-1), accumulate=p.adds(1 + i)))
        if p.dx[0] is not None:
            dx, gamma = self._matrix(p.dx[0]), p.x[1] if self.op.scale else None
            last = (*moments, *slopes, p.adds(0), dx, size_of(dx)[2])
            calls.append(self._launch(launcher, "backward", x, x, ldx, gamma, *last))
        return sequence(calls)
