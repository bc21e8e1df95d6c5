"""Rows of a table by their number (cext/nn/embedding.c)."""

from __future__ import annotations

import numpy as np

from pydtconv._ext import attention as ext
from pydtconv.kernels.base import Call, Kernel, Pass, nothing
from pydtconv.kernels.cpu.rows import flat_of, rows_of
from pydtconv.kernels.registry import register
from pydtconv.ops.base import Spec
from pydtconv.ops.embedding import TakeRows


@register(TakeRows)
class TakeRowsKernel(Kernel[TakeRows]):
    """Numbers are brought to 32 bits in the workspace and checked; then rows are copied, or added."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        return 4 * inputs[0].size if None not in inputs[0].shape else 0

    def _numbers(self, p: Pass) -> np.ndarray:
        assert p.workspace is not None
        return p.workspace[: 4 * p.x[0].size].view(np.int32)

    def forward(self, p: Pass) -> Call:
        index, table, y = flat_of(p.x[0]), p.x[1], rows_of(p.y[0])
        numbers, rows = self._numbers(p), table.shape[0]
        if y.size == 0:
            return nothing

        def run() -> None:
            least, most = index.min(), index.max()
            if not (least > -1 and most < rows):  # a NaN is refused as well
                raise ValueError(f"TakeRows: index: expected numbers from 0 to {rows - 1}, got {least} to {most}")
            np.copyto(numbers, index, casting="unsafe")
            if y.flags.c_contiguous:
                ext.take_rows(numbers, table, y)
            else:  # a slice of a concatenation
                np.take(table, numbers, 0, y, "clip")

        return run

    def backward(self, p: Pass) -> Call:
        index, dy, dtable, numbers = flat_of(p.x[0]), rows_of(p.dy[0]), p.dx[1], self._numbers(p)
        if dtable is None:
            return nothing
        add = p.adds(1)

        def run() -> None:
            if dy.size == 0:
                if not add:
                    dtable.fill(0)
                return
            np.copyto(numbers, index, casting="unsafe")
            if dy.flags.c_contiguous:
                ext.add_to_rows(numbers, dy, add, dtable)
                return
            if not add:
                dtable.fill(0)
            np.add.at(dtable, numbers, dy)

        return run
