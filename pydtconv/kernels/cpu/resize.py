"""Pad and upsample: copies between strided views; bilinear upsampling goes through cext/nn/resize.c."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pydtconv._ext import elem
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.shape import bind_fill, outside
from pydtconv.kernels.cpu.strided import bind_copy, bind_reduce, reduction_workspace, typed
from pydtconv.kernels.registry import register
from pydtconv.ops.base import Spec
from pydtconv.ops.resize import Pad, Upsample


@register(Pad)
class PadKernel(Kernel[Pad]):
    """Mirrored borders are copied line by line, and added back in the reverse order."""

    def window(self, y: np.ndarray) -> tuple[slice, ...]:
        return tuple(slice(a, n - b) for n, (a, b) in zip(y.shape, self.op.padding, strict=True))

    def mirrored(self, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """(source, copy) of each mirrored line, axis by axis: the later axes copy what the earlier have filled."""
        pairs = []
        skip = 1 if self.op.mode == "reflect" else 0
        window = list(self.window(y))
        for axis, (before, after) in enumerate(self.op.padding):
            first, last = window[axis].start, window[axis].stop - 1
            lines = [(first + skip + i, first - 1 - i) for i in range(before)]
            lines += [(last - skip - i, last + 1 + i) for i in range(after)]
            rest = (*[slice(None)] * axis, slice(None), *window[axis + 1 :])
            for source, target in lines:
                place = [(*rest[:axis], slice(k, k + 1), *rest[axis + 1 :]) for k in (source, target)]
                pairs.append((y[place[0]], y[place[1]]))
        return pairs

    def forward(self, p: Pass) -> Call:
        y = p.y[0]
        window = self.window(y)
        inner = bind_copy(p.x[0], y[window])
        if self.op.mode == "constant":
            return sequence([*(bind_fill(part, self.op.value) for part in outside(y, window)), inner])
        return sequence([inner, *(bind_copy(source, copy) for source, copy in self.mirrored(y))])

    def backward(self, p: Pass) -> Call:
        if p.dx[0] is None:
            return nothing
        dy = p.dy[0]
        calls = (
            []
            if self.op.mode == "constant"
            else [bind_copy(copy, source, accumulate=True) for source, copy in reversed(self.mirrored(dy))]
        )
        return sequence([*calls, bind_copy(dy[self.window(dy)], p.dx[0], accumulate=p.adds(0))])


@register(Upsample)
class UpsampleKernel(Kernel[Upsample]):
    """Nearest: a copy to a view with repeated pixels, and a sum over it.  Bilinear: C."""

    def _repeated(self, y: np.ndarray) -> np.ndarray:
        """y (or dy) as (n, h, size, w, size, c)."""
        (n, oh, ow, c), (fh, fw) = y.shape, self.op.size
        s = y.strides
        return as_strided(y, (n, oh // fh, fh, ow // fw, fw, c), (s[0], s[1] * fh, s[1], s[2] * fw, s[2], s[3]))

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if direction == "forward" or self.op.interpolation != "nearest" or None in inputs[0].shape:
            return 0
        n, h, w, c = inputs[0].shape
        return reduction_workspace((n, h, self.op.size[0], w, self.op.size[1], c), (2, 4), inputs[0].dtype)

    def forward(self, p: Pass) -> Call:
        x, y = p.x[0], p.y[0]
        if x.size == 0:
            return nothing
        if self.op.interpolation == "nearest":
            return bind_copy(x[:, :, None, :, None, :], self._repeated(y))
        return partial(typed(elem.bilinear_forward, x.dtype), x, y, pixel_distance(x), pixel_distance(y))

    def backward(self, p: Pass) -> Call:
        dy, dx = p.dy[0], p.dx[0]
        if dx is None or dx.size == 0:
            return nothing
        if self.op.interpolation == "nearest":
            return bind_reduce(
                "sum", (2, 4), self._repeated(dy), dx[:, :, None, :, None, :], p.workspace, accumulate=p.adds(0)
            )
        return partial(
            typed(elem.bilinear_backward, dx.dtype), p.adds(0), dy, dx, pixel_distance(dy), pixel_distance(dx)
        )


def pixel_distance(x: np.ndarray) -> int:
    """Elements between neighbouring pixels of images, which may be a channel slice."""
    n, h, w, c = x.shape
    for extent, stride, pixels in ((w, x.strides[2], 1), (h, x.strides[1], w), (n, x.strides[0], h * w)):
        if extent > 1:
            return stride // x.itemsize // pixels
    return c
