"""Softmax and its logarithm along an axis: a warp for each sample (cext/cuda/losses.cu)."""

from __future__ import annotations

from typing import Any

from pydtconv.kernels.base import Call, Kernel, Pass, nothing
from pydtconv.kernels.gpu.arrays import around, register
from pydtconv.ops.softmax import LogSoftmax, Softmax

#: threads of a block: four samples
THREADS = 128


def by_samples(launcher: Any, kernel: str, x: Any, axis: int, *arguments: Any) -> Call:
    """A kernel of losses.cu for the samples of x along an axis."""
    outer, k, inner = around(x.shape, axis)
    samples = outer * inner
    if not samples:
        return nothing
    return launcher.launch(f"losses.{kernel}", x.dtype, (-(-samples // 4),), THREADS, samples, k, inner, *arguments)


def dense(launcher: Any, array: Any) -> Any:
    """The array, which has to be dense."""
    if not array.flags.c_contiguous:
        raise ValueError(f"expected a dense array, got strides {array.strides} for shape {array.shape}")
    return array


@register(Softmax, LogSoftmax)
class SoftmaxKernel(Kernel[Softmax]):
    """Samples lie around the axis."""

    def forward(self, p: Pass) -> Call:
        x, y = (dense(p.launcher, array) for array in (p.x[0], p.y[0]))
        return by_samples(p.launcher, "softmax_forward", x, self.op.axis, isinstance(self.op, LogSoftmax), x, y)

    def backward(self, p: Pass) -> Call:
        y, dy, dx = (dense(p.launcher, array) for array in (p.y[0], p.dy[0], p.dx[0]))
        arguments = (isinstance(self.op, LogSoftmax), y, dy, p.adds(0), dx)
        return by_samples(p.launcher, "softmax_backward", y, self.op.axis, *arguments)
