"""IM2COL and COL2IM (cext/cuda/convolution.cu) around the device's GEMM: serves every problem.

The images of a batch go in parts whose columns take at most COLUMNS bytes.  Pointwise convolutions need no columns.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from pydtconv import dtypes
from pydtconv.conv.problem import ConvProblem
from pydtconv.kernels.base import Call, sequence
from pydtconv.kernels.gpu.arrays import PACK, in_packs, part, pixel_stride, rows_of
from pydtconv.kernels.gpu.convolutions.algorithm import Kept, Work

#: bytes of the columns of a part of the batch, more only where one image has more
COLUMNS = 256 << 20


def sizes_of(launcher: Any, p: ConvProblem) -> Any:
    """The three axes as the kernels take them."""
    return launcher.constant(
        [n for a in p.axes for n in (a.extent, a.out, a.kernel, a.stride, a.dilation, a.before)], np.int64
    )


def bind_im2col(launcher: Any, p: ConvProblem, sizes: Any, x: Any, channel: int, channels: int, columns: Any) -> Call:
    """Columns of some channels of images.  Taps along the width are one run where pixels lie together as taps do.

    Raises ValueError where an image has 2^32 runs.
    """
    ldx, dense = pixel_stride(x), p.axes[-1].dilation == 1
    run = p.axes[-1].kernel if dense and ldx == channels else 1
    wide = channels * x.itemsize % PACK == 0 and in_packs(x, columns)
    lanes = launcher.device.lanes(-(-run * channels // (PACK // x.itemsize if wide else 1)))
    runs = columns.size // (run * channels)
    if runs >= 1 << 32:
        raise ValueError(f"im2col: expected fewer than 2^32 rows of filters over outputs of a part, got {runs}")
    arguments = (wide, lanes, run, x.shape[0], channels, channel, sizes, x, ldx, columns)
    return launcher.each("convolution.im2col", x.dtype, runs * lanes, *arguments)


class Im2col:
    """Every pass is one product for each part of the batch and each group."""

    def reason(self, p: ConvProblem, direction: str) -> str | None:
        return None

    def _images(self, p: ConvProblem) -> int:
        """Images of a part."""
        each = math.prod(p.out) * math.prod(p.kernel) * (p.ci // p.groups) * dtypes.itemsize(p.dtype)
        return max(1, min(p.n, COLUMNS // max(each, 1)))

    def others(self, p: ConvProblem, direction: str, count: int) -> list[str]:
        return []

    def work(self, p: ConvProblem, direction: str) -> Work:
        """Columns are written and read besides what is there."""
        images = math.prod(p.x_shape) + math.prod(p.y_shape) + math.prod(p.w_shape)
        columns = 0 if p.is_pointwise else p.n * math.prod(p.out) * math.prod(p.kernel) * p.ci
        return Work(float(p.flops), float(dtypes.itemsize(p.dtype) * (images + 2 * columns)))

    def workspace(self, p: ConvProblem, direction: str, kept: Collection[str] = ()) -> int:
        if p.is_pointwise:
            return 0
        columns = math.prod(p.kernel) * (p.ci // p.groups)
        return self._images(p) * math.prod(p.out) * columns * dtypes.itemsize(p.dtype)

    def _parts(self, p: ConvProblem) -> Iterator[tuple[slice, int]]:
        """Images and group of each product, the groups within the parts."""
        step = self._images(p)
        for start in range(0, p.n, step):
            for group in range(p.groups):
                yield slice(start, min(start + step, p.n)), group

    def _columns(self, p: ConvProblem, images: int, workspace: Any, dtype: Any, itemsize: int) -> Any:
        shape = (images * math.prod(p.out), math.prod(p.kernel) * (p.ci // p.groups))
        return part(workspace, 0, shape, dtype, itemsize)

    def _gather(self, launcher: Any, p: ConvProblem, sizes: Any, x: Any, group: int, workspace: Any) -> tuple[Any, Any]:
        """The columns of a part of the images, and what makes them; None where the image itself has them."""
        inputs = p.ci // p.groups
        if p.is_pointwise:
            return rows_of(x)[:, group * inputs : (group + 1) * inputs], None
        columns = self._columns(p, x.shape[0], workspace, x.dtype, x.itemsize)
        return columns, bind_im2col(launcher, p, sizes, x, group * inputs, inputs, columns)

    def forward(
        self, launcher: Any, p: ConvProblem, x: Any, w: Any, y: Any, workspace: Any, adds: bool, kept: Kept = None
    ) -> Call:
        calls, sizes, outputs = [], sizes_of(launcher, p), p.co // p.groups
        filters = w.reshape(-1, p.co)
        for images, group in self._parts(p):
            columns, gather = self._gather(launcher, p, sizes, x[images], group, workspace)
            own = slice(group * outputs, (group + 1) * outputs)
            product = launcher.gemm(columns, filters[:, own], rows_of(y[images])[:, own], adds)
            calls += [product] if gather is None else [gather, product]
        return sequence(calls)

    def backward_data(
        self, launcher: Any, p: ConvProblem, dy: Any, w: Any, dx: Any, workspace: Any, adds: bool, kept: Kept = None
    ) -> Call:
        calls, sizes = [], sizes_of(launcher, p)
        inputs, outputs, filters = p.ci // p.groups, p.co // p.groups, w.reshape(-1, p.co)
        for images, group in self._parts(p):
            own, channels = slice(group * outputs, (group + 1) * outputs), slice(group * inputs, (group + 1) * inputs)
            slopes, turned, part_of_x = rows_of(dy[images])[:, own], filters[:, own].T, dx[images]
            if p.is_pointwise:
                calls.append(launcher.gemm(slopes, turned, rows_of(part_of_x)[:, channels], adds))
                continue
            columns = self._columns(p, part_of_x.shape[0], workspace, dx.dtype, dx.itemsize)
            calls.append(launcher.gemm(slopes, turned, columns))
            wide = inputs * dx.itemsize % PACK == 0 and in_packs(part_of_x, columns)
            arguments = (part_of_x.shape[0], inputs, group * inputs, sizes, columns, adds, part_of_x, pixel_stride(dx))
            count = part_of_x.size // p.groups // (PACK // dx.itemsize if wide else 1)
            calls.append(launcher.each("convolution.col2im", dx.dtype, count, wide, *arguments))
        return sequence(calls)

    def backward_weights(
        self, launcher: Any, p: ConvProblem, x: Any, dy: Any, dw: Any, workspace: Any, kept: Kept = None
    ) -> Call:
        calls, sizes, outputs = [], sizes_of(launcher, p), p.co // p.groups
        filters = dw.reshape(-1, p.co)
        for images, group in self._parts(p):
            columns, gather = self._gather(launcher, p, sizes, x[images], group, workspace)
            own = slice(group * outputs, (group + 1) * outputs)
            product = launcher.gemm(columns.T, rows_of(dy[images])[:, own], filters[:, own], images.start > 0)
            calls += [product] if gather is None else [gather, product]
        return sequence(calls)
