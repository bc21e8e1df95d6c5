"""Pooling over windows of an image, and over whole images (cext/nn/pooling_windows.h)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from pydtconv._ext import pooling as ext
from pydtconv.kernels.base import Call, Kernel, Pass, RowBlock, RunState, WindowKernel, sequence
from pydtconv.kernels.cpu.normalized_image import AFTER_NORMALIZATION, bind_mean_gradient, bind_normalized_sums
from pydtconv.kernels.cpu.rims import PoolRims
from pydtconv.kernels.cpu.rows import bytes_of, rows_of
from pydtconv.kernels.registry import IMAGES, register
from pydtconv.kernels.windows import axes_of
from pydtconv.ops.base import Spec
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
PoolOp = TypeVar("PoolOp", MaxPool, AdaptiveMaxPool, AveragePool, AdaptiveAveragePool)


def _width(places: np.ndarray | None) -> int:
    """Bytes of each of the places of maxima."""
    return 1 if places is None else places.itemsize


def window_of(op: WindowPool | AdaptivePool, x: np.ndarray, y: np.ndarray) -> ext.PoolWindow:
    """The window as C has it; x and y may be the gradients."""
    depth, (ih, oh, kh, sh, top), (iw, ow, kw, sw, left) = axes_of(op, x, y)
    return ext.PoolWindow(x.shape[0], ih, iw, x.shape[-1], oh, ow, kh, kw, sh, sw, top, left, *depth)


class _PoolKernel(WindowKernel[PoolOp]):
    """Parts of the passes of windows that lie a stride apart; others run as a whole."""

    @cached_property
    def rims(self) -> PoolRims[Any] | None:
        return None if getattr(self.op, "halo", None) is None else PoolRims(self)

    def workspace(self, direction: str, *inputs: Spec) -> int:
        return 0 if self.rims is None else self.rims.workspace(direction, *inputs)

    @property
    def works_in_blocks(self) -> bool:
        return isinstance(self.op, WindowPool) and isinstance(self.op.padding, tuple) and self.op.halo is None

    def block_workspace(self, block: RowBlock, *inputs: Spec) -> int:
        return 0

    def block_saves(self, count: int, *inputs: Spec) -> Spec | None:
        return None

    def forward_blocks(self, p: Pass, blocks: Sequence[RowBlock], every: Sequence[RowBlock] = ()) -> Call:
        """Places of maxima are those in their windows, whatever the block."""
        calls = []
        for block in blocks:
            here, rows = slice(block.image, block.image + 1), slice(*block.out)
            whole: Any = self.op
            op = dataclasses.replace(whole, padding=(block.padding, *whole.padding[1:]))
            saved = {key: value[here, rows] for key, value in p.saved.items()}
            x = [p.x[0][here, slice(*block.read)]]
            part = dataclasses.replace(p, x=x, y=[p.y[0][here, rows]], saved=saved, run=RunState())
            calls.append(type(self)(op).forward(part))
        return sequence(calls)


class _MaxPoolKernel(_PoolKernel[MaxOp]):
    """Training writes the place of each maximum; backward goes by it."""

    def forward(self, p: Pass) -> Call:
        if self.rims is not None:
            return self.rims.forward(p)
        x, y, places = rows_of(p.x[0]), rows_of(p.y[0]), p.saved.get("argmax")
        window, argmax, width = window_of(self.op, p.x[0], p.y[0]), bytes_of(places), _width(places)
        call: Call = ext.bind_max_pool(window, x, y, argmax, width)
        return call

    def backward(self, p: Pass) -> Call:
        if self.rims is not None:
            return self.rims.backward(p)
        dy, dx, places = rows_of(p.dy[0]), rows_of(p.dx[0]), p.saved["argmax"]
        window, argmax, width = window_of(self.op, p.dx[0], p.dy[0]), bytes_of(places), _width(places)
        accumulate = p.adds(0)
        call: Call = ext.bind_max_pool_backward(window, dy, argmax, width, accumulate, dx)
        return call


@register(MaxPool, dtypes=IMAGES)
class MaxPoolKernel(_MaxPoolKernel[MaxPool]):
    """Over windows that lie a stride apart."""


@register(AdaptiveMaxPool, dtypes=IMAGES)
class AdaptiveMaxPoolKernel(_MaxPoolKernel[AdaptiveMaxPool]):
    """Over windows that an image is cut into."""


class _AveragePoolKernel(_PoolKernel[AverageOp]):
    """One pass each way."""

    @property
    def _include_pad(self) -> bool:
        return isinstance(self.op, AveragePool) and self.op.count_include_pad

    def forward(self, p: Pass) -> Call:
        if self.rims is not None:
            return self.rims.forward(p)
        x, y = rows_of(p.x[0]), rows_of(p.y[0])
        window, include_pad = window_of(self.op, p.x[0], p.y[0]), self._include_pad
        call: Call = ext.bind_average_pool(window, x, include_pad, y)
        return call

    def backward(self, p: Pass) -> Call:
        if self.rims is not None:
            return self.rims.backward(p)
        dy, dx = rows_of(p.dy[0]), rows_of(p.dx[0])
        window, include_pad = window_of(self.op, p.dx[0], p.dy[0]), self._include_pad
        accumulate = p.adds(0)
        call: Call = ext.bind_average_pool_backward(window, dy, include_pad, accumulate, dx)
        return call


@register(AveragePool, dtypes=IMAGES)
class AveragePoolKernel(_AveragePoolKernel[AveragePool]):
    """Over windows that lie a stride apart."""


@register(AdaptiveAveragePool, dtypes=IMAGES)
class AdaptiveAveragePoolKernel(_AveragePoolKernel[AdaptiveAveragePool]):
    """Over windows that an image is cut into."""


@register(GlobalAveragePool, dtypes=IMAGES)
class GlobalAveragePoolKernel(Kernel[GlobalAveragePool]):
    """Sums of each image, in blocks; the image may be one that a normalization leaves."""

    def takes_prologue(self, activation: str | None, backward: bool, *inputs: Spec) -> bool:
        return activation in AFTER_NORMALIZATION

    def gathers_reductions(self, *inputs: Spec) -> bool:
        return True

    def workspace(self, direction: str, *inputs: Spec) -> int:
        (x,) = inputs
        return 0 if direction == "forward" or x.shape[0] is None else 16 * x.shape[0] * (x.shape[-1] or 0)

    def forward(self, p: Pass) -> Call:
        n, x, y = p.x[0].shape[0], rows_of(p.x[0]), rows_of(p.y[0])
        if p.prologue is not None and x.size:
            return bind_normalized_sums(p.prologue, n, x, None, y, factor=n / len(x))
        call: Call = ext.bind_global_average_pool(n, x, y)
        return call

    def backward(self, p: Pass) -> Call:
        n, dy, dx, accumulate = p.dx[0].shape[0], rows_of(p.dy[0]), rows_of(p.dx[0]), p.adds(0)
        if p.reductions is not None and not dx.size:
            return partial(p.reductions.sums.fill, 0)
        if p.reductions is not None:
            assert p.workspace is not None
            return bind_mean_gradient(p.reductions, n, dy, dx, accumulate, p.workspace)
        call: Call = ext.bind_global_average_pool_backward(n, dy, accumulate, dx)
        return call


@register(GlobalMaxPool, dtypes=IMAGES)
class GlobalMaxPoolKernel(Kernel[GlobalMaxPool]):
    """Training writes the place of each maximum; backward goes by it."""

    def forward(self, p: Pass) -> Call:
        n, x, y, argmax = p.x[0].shape[0], rows_of(p.x[0]), rows_of(p.y[0]), p.saved.get("argmax")
        call: Call = ext.bind_global_max_pool(n, x, y, argmax)
        return call

    def backward(self, p: Pass) -> Call:
        n, dy, dx, argmax = p.dx[0].shape[0], rows_of(p.dy[0]), rows_of(p.dx[0]), p.saved["argmax"]
        accumulate = p.adds(0)
        call: Call = ext.bind_global_max_pool_backward(n, dy, argmax, accumulate, dx)
        return call
