"""Pooling over windows of an image (NHWC), and over whole images (cext/nn/pooling.c)."""

from __future__ import annotations

import numpy as np

from pydtconv._ext import pooling as ext
from pydtconv.kernels.base import Call, Kernel, Pass
from pydtconv.kernels.cpu.rows import bytes_of, rows_of
from pydtconv.kernels.registry import register
from pydtconv.ops.base import spec_of
from pydtconv.ops.pooling import AveragePool, GlobalAveragePool, GlobalMaxPool, MaxPool, WindowPool


def window_of(op: WindowPool, x: np.ndarray, y: np.ndarray) -> ext.PoolWindow:
    """The window as C has it; x and y may be the gradients."""
    (n, ih, iw, c), (_, oh, ow, _) = x.shape, y.shape
    rows, columns = (op.window(axis, spec_of(x)) for axis in (1, 2))
    assert rows is not None
    assert columns is not None
    kernel, strides = (rows.kernel, columns.kernel), (rows.stride, columns.stride)
    return ext.PoolWindow(n, ih, iw, c, oh, ow, *kernel, *strides, rows.before, columns.before)


@register(MaxPool)
class MaxPoolKernel(Kernel[MaxPool]):
    """Training writes the place of each maximum; backward goes by it."""

    def forward(self, p: Pass) -> Call:
        x, y, argmax = rows_of(p.x[0]), rows_of(p.y[0]), bytes_of(p.saved.get("argmax"))
        window, width = window_of(self.op, p.x[0], p.y[0]), self.op.argmax_bytes

        def run() -> None:
            ext.max_pool_forward(window, x, y, argmax, width)

        return run

    def backward(self, p: Pass) -> Call:
        dy, dx, argmax = rows_of(p.dy[0]), rows_of(p.dx[0]), bytes_of(p.saved["argmax"])
        window, width = window_of(self.op, p.dx[0], p.dy[0]), self.op.argmax_bytes
        accumulate = p.adds(0)

        def run() -> None:
            ext.max_pool_backward(window, dy, argmax, width, accumulate, dx)

        return run


@register(AveragePool)
class AveragePoolKernel(Kernel[AveragePool]):
    """One sweep each way."""

    def forward(self, p: Pass) -> Call:
        x, y = rows_of(p.x[0]), rows_of(p.y[0])
        window = window_of(self.op, p.x[0], p.y[0])

        def run() -> None:
            ext.average_pool_forward(window, x, self.op.count_include_pad, y)

        return run

    def backward(self, p: Pass) -> Call:
        dy, dx = rows_of(p.dy[0]), rows_of(p.dx[0])
        window = window_of(self.op, p.dx[0], p.dy[0])
        accumulate = p.adds(0)

        def run() -> None:
            ext.average_pool_backward(window, dy, self.op.count_include_pad, accumulate, dx)

        return run


@register(GlobalAveragePool)
class GlobalAveragePoolKernel(Kernel[GlobalAveragePool]):
    """Sums of each image, in blocks."""

    def forward(self, p: Pass) -> Call:
        n, x, y = p.x[0].shape[0], rows_of(p.x[0]), rows_of(p.y[0])

        def run() -> None:
            ext.global_average_pool_forward(n, x, y)

        return run

    def backward(self, p: Pass) -> Call:
        n, dy, dx, accumulate = p.dx[0].shape[0], rows_of(p.dy[0]), rows_of(p.dx[0]), p.adds(0)

        def run() -> None:
            ext.global_average_pool_backward(n, dy, accumulate, dx)

        return run


@register(GlobalMaxPool)
class GlobalMaxPoolKernel(Kernel[GlobalMaxPool]):
    """Training writes the place of each maximum; backward goes by it."""

    def forward(self, p: Pass) -> Call:
        n, x, y, argmax = p.x[0].shape[0], rows_of(p.x[0]), rows_of(p.y[0]), p.saved.get("argmax")

        def run() -> None:
            ext.global_max_pool_forward(n, x, y, argmax)

        return run

    def backward(self, p: Pass) -> Call:
        n, dy, dx, argmax = p.dx[0].shape[0], rows_of(p.dy[0]), rows_of(p.dx[0]), p.saved["argmax"]
        accumulate = p.adds(0)

        def run() -> None:
            ext.global_max_pool_backward(n, dy, argmax, accumulate, dx)

        return run
