"""Mean and variance of each channel, in two passes (cext/cuda/columns.cu)."""

from __future__ import annotations

from typing import Any

from pydtconv.kernels.base import Call, Kernel, Pass
from pydtconv.kernels.gpu.arrays import register
from pydtconv.kernels.gpu.columns import bind_statistics, sums_bytes
from pydtconv.ops.base import Spec
from pydtconv.ops.moments import Moments


def moments_in(array: Any) -> tuple[Any, Any]:
    """Mean and biased variance as vectors (c,), views of an array of moments."""
    return array[0, 0, 0], array[1, 0, 0]


@register(Moments)
class MomentsKernel(Kernel[Moments]):
    """The passes that a convolution's own moments save on a CPU."""

    def workspace(self, direction: str, *inputs: Spec) -> int:
        return sums_bytes(inputs[0])

    def forward(self, p: Pass) -> Call:
        return bind_statistics(p.launcher, p.x[0], *moments_in(p.y[0]), p.workspace)
