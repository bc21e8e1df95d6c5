"""The functions of NumPy's table: they run as they are, and results are copied to where the plan wants them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.kernels.base import Call, Kernel, Pass, nothing
from pydtconv.kernels.registry import ANY, register
from pydtconv.ops.table_op import Backward, TableOp, no_gradient


@register(TableOp, dtypes=ANY)
class TableKernel(Kernel[TableOp]):
    """Forward and gradient of a row."""

    def forward(self, p: Pass) -> Call:
        x, outputs, function, static = tuple(p.x), tuple(p.y), self.op.rule.forward, dict(self.op.static)

        def run() -> None:
            with np.errstate(all="ignore"):
                result = function(*x, **static)
            results = result if len(outputs) > 1 else (result,)
            for y, value in zip(outputs, results, strict=True):
                np.copyto(y, value, casting="unsafe")

        return run

    def backward(self, p: Pass) -> Call:
        if all(dx is None for dx in p.dx) or self.op.rule.gradient is no_gradient:
            return nothing
        self.op.check_differentiable()
        gradient, static = self.op.rule.gradient, dict(self.op.static)
        assert gradient is not None
        shapes = tuple(() if dx is None else dx.shape for dx in p.dx)
        if p.x and all(x is not None for x in p.x):
            shapes = tuple(x.shape for x in p.x)
        given = Backward(tuple(p.dy), tuple(p.x), tuple(p.y), shapes)

        def run() -> None:
            with np.errstate(all="ignore"):
                result: Any = gradient(given, **static)
            for i, dx in enumerate(p.dx):
                if dx is None:
                    continue
                value = 0 if result[i] is None else result[i]
                if p.adds(i):
                    dx += value
                else:
                    np.copyto(dx, value, casting="unsafe")

        return run
