"""Layer normalization: rows by their own moments (cext/nn/layernorm.c)."""

from __future__ import annotations

import numpy as np

from pydtconv._ext import norm
from pydtconv.kernels.base import Call, Kernel, Pass
from pydtconv.kernels.cpu.rows import flat_of, rows_of
from pydtconv.kernels.registry import IMAGES, register
from pydtconv.ops.base import Spec
from pydtconv.ops.layer_normalization import LayerNorm


@register(LayerNorm, dtypes=IMAGES)
class LayerNormKernel(Kernel[LayerNorm]):
    """Rows of a matrix (rows, k); backward sums dgamma and dbeta over blocks of rows."""

    def _sizes(self, x: Spec) -> tuple[int, int]:
        """(rows, k)."""
        k = Spec(x.shape[self.op.lead(len(x.shape)) :]).size
        return x.size // k, k

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if direction == "forward":
            return 0
        return norm.layernorm_workspace(*self._sizes(inputs[0]), inputs[0].dtype)

    def _matrix(self, array: np.ndarray | None) -> np.ndarray | None:
        """(rows, k)."""
        if array is None:
            return None
        lead = self.op.lead(array.ndim)
        if lead == array.ndim - 1:
            return rows_of(array)
        return flat_of(array).reshape(-1, int(np.prod(array.shape[lead:])))

    def forward(self, p: Pass) -> Call:
        x, y = self._matrix(p.x[0]), self._matrix(p.y[0])
        gamma = flat_of(p.x[1]) if self.op.scale else None
        beta = flat_of(p.x[1 + self.op.scale]) if self.op.center else None
        mean, inverse, rms = flat_of(p.saved["mean"]), flat_of(p.saved["inverse"]), self.op.rms
        call: Call = norm.bind_layernorm(rms, x, gamma, beta, self.op.epsilon, mean, inverse, y)
        return call

    def backward(self, p: Pass) -> Call:
        x, dy, dx = self._matrix(p.x[0]), self._matrix(p.dy[0]), self._matrix(p.dx[0])
        gamma, dgamma = (flat_of(p.x[1]), flat_of(p.dx[1])) if self.op.scale else (None, None)
        dbeta = flat_of(p.dx[1 + self.op.scale]) if self.op.center else None
        mean, inverse, workspace = flat_of(p.saved["mean"]), flat_of(p.saved["inverse"]), p.workspace
        add, rms = p.adds(0), self.op.rms
        add_gamma = self.op.scale and p.adds(1)
        add_beta = self.op.center and p.adds(1 + self.op.scale)
        call: Call = norm.bind_layernorm_backward(
            rms, x, gamma, mean, inverse, dy, add, dx, add_gamma, dgamma, add_beta, dbeta, workspace
        )
        return call
