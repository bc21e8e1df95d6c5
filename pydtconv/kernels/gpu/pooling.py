"""Pooling over windows of an image, and over whole images (cext/cuda/pooling.cu)."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from pydtconv.kernels.base import Call, Kernel, Pass
from pydtconv.kernels.gpu.arrays import PACK, in_packs, pixel_stride, register
from pydtconv.kernels.windows import axes_of
from pydtconv.ops.pooling import (
    AdaptiveAveragePool,
    AdaptiveMaxPool,
    AdaptivePool,
    AveragePool,
    GlobalAveragePool,
    GlobalMaxPool,
    MaxPool,
    WindowPool,
)

MaxOp = TypeVar("MaxOp", MaxPool, AdaptiveMaxPool)
AverageOp = TypeVar("AverageOp", AveragePool, AdaptiveAveragePool)


def sizes_of(launcher: Any, op: WindowPool | AdaptivePool, x: Any, y: Any) -> Any:
    """The three axes as the kernels take them; x and y may be the gradients."""
    return launcher.constant([n for axis in axes_of(op, x, y) for n in axis], np.int64)


def _places(saved: Any) -> tuple[Any, Any]:
    """Places of maxima as bytes, or as four bytes each."""
    places = saved.get("argmax")
    return (None, None) if places is None else (places, None) if places.itemsize == 1 else (None, places)


class _MaxPoolKernel(Kernel[MaxOp]):
    """Training writes the place of each maximum; backward goes by it."""

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        sizes = sizes_of(p.launcher, self.op, x, y)
        arguments = (x.shape[0], x.shape[-1], sizes, x, pixel_stride(x), y, pixel_stride(y), *_places(p.saved))
        return p.launcher.each("pooling.max_pool_forward", x.dtype, y.size, *arguments)

    def backward(self, p: Pass) -> Call:
        dy, dx = p.dy[0], p.dx[0]
        sizes = sizes_of(p.launcher, self.op, dx, dy)
        wide = dx.shape[-1] * dx.itemsize % PACK == 0 and in_packs(dy, dx)
        arguments = (wide, dx.shape[0], dx.shape[-1], sizes, dy, pixel_stride(dy), *_places(p.saved), p.adds(0))
        return p.launcher.each("pooling.max_pool_backward", dx.dtype, dx.size, *arguments, dx, pixel_stride(dx))


@register(MaxPool)
class MaxPoolKernel(_MaxPoolKernel[MaxPool]):
    """Over windows that lie a stride apart."""


@register(AdaptiveMaxPool)
class AdaptiveMaxPoolKernel(_MaxPoolKernel[AdaptiveMaxPool]):
    """Over windows that an image is cut into."""


class _AveragePoolKernel(Kernel[AverageOp]):
    """One pass each way."""

    @property
    def _include_pad(self) -> bool:
        return isinstance(self.op, AveragePool) and self.op.count_include_pad

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        sizes = sizes_of(p.launcher, self.op, x, y)
        arguments = (x.shape[0], x.shape[-1], sizes, x, pixel_stride(x), self._include_pad, y, pixel_stride(y))
        return p.launcher.each("pooling.average_pool_forward", x.dtype, y.size, *arguments)

    def backward(self, p: Pass) -> Call:
        dy, dx = p.dy[0], p.dx[0]
        sizes = sizes_of(p.launcher, self.op, dx, dy)
        arguments = (dx.shape[0], dx.shape[-1], sizes, dy, pixel_stride(dy), self._include_pad, p.adds(0))
        return p.launcher.each("pooling.average_pool_backward", dx.dtype, dx.size, *arguments, dx, pixel_stride(dx))


@register(AveragePool)
class AveragePoolKernel(_AveragePoolKernel[AveragePool]):
    """Over windows that lie a stride apart."""


@register(AdaptiveAveragePool)
class AdaptiveAveragePoolKernel(_AveragePoolKernel[AdaptiveAveragePool]):
    """Over windows that an image is cut into."""


@register(GlobalAveragePool)
class GlobalAveragePoolKernel(Kernel[GlobalAveragePool]):
    """A block for 32 channels of an image."""

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        grid = (-(-x.shape[-1] // 32), x.shape[0])
        arguments = (math.prod(x.shape[1:-1]), x.shape[-1], x, pixel_stride(x), y, pixel_stride(y))
        return p.launcher.launch("pooling.global_average_forward", x.dtype, grid, 256, *arguments)

    def backward(self, p: Pass) -> Call:
        dy, dx = p.dy[0], p.dx[0]
        sizes = (dx.shape[0], math.prod(dx.shape[1:-1]), dx.shape[-1])
        arguments = (*sizes, dy, pixel_stride(dy), p.adds(0), dx, pixel_stride(dx))
        return p.launcher.each("pooling.global_average_backward", dx.dtype, dx.size, *arguments)


@register(GlobalMaxPool)
class GlobalMaxPoolKernel(Kernel[GlobalMaxPool]):
    """Training writes the place of each maximum; backward goes by it."""

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        arguments = (x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1], x, pixel_stride(x), y, pixel_stride(y))
        return p.launcher.each("pooling.global_max_forward", x.dtype, y.size, *arguments, p.saved.get("argmax"))

    def backward(self, p: Pass) -> Call:
        dy, dx = p.dy[0], p.dx[0]
        sizes = (dx.shape[0], math.prod(dx.shape[1:-1]), dx.shape[-1])
        arguments = (*sizes, dy, pixel_stride(dy), p.saved["argmax"], p.adds(0), dx, pixel_stride(dx))
        return p.launcher.each("pooling.global_max_backward", dx.dtype, dx.size, *arguments)
