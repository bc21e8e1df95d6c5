"""A loop, whose body has a plan of its own (graph/runtime); and the product that pulls gradients back through it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.dtypes import BFLOAT16, from_bits, to_bits
from pydtconv.kernels.base import Call, Kernel, Pass
from pydtconv.kernels.registry import ANY, register
from pydtconv.ops.base import Spec
from pydtconv.ops.body_loop import Scan, VectorProduct


@register(Scan, dtypes=(*ANY, BFLOAT16))
class ScanKernel(Kernel[Scan]):
    """Runs the body's passes for each step."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        return int(self.op.plan.workspace(direction, self.op.segment if self.op.again else 0))

    def forward(self, p: Pass) -> Call:
        return self.op.body.bind_forward(self.op, p)

    def backward(self, p: Pass) -> Call:
        return self.op.body.bind_backward(self.op, p)


@register(VectorProduct, dtypes=(*ANY, BFLOAT16))
class VectorProductKernel(Kernel[VectorProduct]):
    """In a body forward does not run, and the gradient of the result is 1."""

    def forward(self, p: Pass) -> Call:
        def call() -> None:
            p.y[0][...] = sum(np.vdot(_reals(x), _reals(v)) for x, v in zip(p.x[::2], p.x[1::2], strict=True))

        return call

    def backward(self, p: Pass) -> Call:
        pairs, dy = [(v, dx) for v, dx in zip(p.x[1::2], p.dx[::2], strict=True) if dx is not None], p.dy[0]

        def call() -> None:
            factor = dy.item()
            for v, dx in pairs:
                if factor == 1:
                    dx[...] = v
                else:
                    found = _reals(v) * factor
                    dx[...] = to_bits(found) if dx.dtype == np.uint16 else found

        return call


def _reals(array: Any) -> Any:
    return from_bits(array) if array.dtype == np.uint16 else array
