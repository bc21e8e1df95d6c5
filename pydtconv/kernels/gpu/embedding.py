"""Rows of a table by their number (cext/cuda/embedding.cu)."""

from __future__ import annotations

import numpy as np

from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.gpu.arrays import numbers_of, register
from pydtconv.ops.base import Spec
from pydtconv.ops.embedding import TakeRows

THREADS = 256


@register(TakeRows)
class TakeRowsKernel(Kernel[TakeRows]):
    """Backward sums the gradients of equal numbers in their order, without atomic additions: the same in every run."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        return 4 * inputs[0].size if direction == "backward" and None not in inputs[0].shape else 0

    def forward(self, p: Pass) -> Call:
        (index, table), y = p.x, p.y[0]
        if y.size == 0:
            return nothing
        numbers, code = numbers_of(index)
        arguments = (index.size, table.shape[1], table.shape[0], code, numbers, table, y)
        return p.launcher.each("embedding.take_rows", y.dtype, y.size, *arguments)

    def backward(self, p: Pass) -> Call:
        index, dy, dtable = p.x[0], p.dy[0], p.dx[1]
        if dtable is None or dtable.size == 0:
            return nothing
        if dy.size == 0:
            return nothing if p.adds(1) else p.launcher.fill(dtable, 0.0)
        rows, width = dtable.shape
        numbers, code = numbers_of(index)
        assert p.workspace is not None
        places = p.workspace[: 4 * index.size].view(np.int32)
        found = p.launcher.each("embedding.row_numbers", dy.dtype, index.size, index.size, rows, code, numbers, places)
        blocks = -(-rows // (THREADS // 32))
        arguments = (index.size, width, rows, places, dy, p.adds(1), dtable)
        return sequence([found, p.launcher.launch("embedding.add_to_rows", dy.dtype, (blocks,), THREADS, *arguments)])
