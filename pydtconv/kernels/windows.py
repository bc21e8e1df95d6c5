"""The sizes of windowed pooling as kernels of every device take them."""

from __future__ import annotations

from typing import Any

from pydtconv.ops.base import Window, spec_of
from pydtconv.ops.pooling import AdaptivePool, WindowPool

#: extent of the input, extent of the output, taps, stride, padding before
Axis = tuple[int, int, int, int, int]


def axes_of(op: WindowPool | AdaptivePool, x: Any, y: Any) -> list[Axis]:
    """Depth, rows and columns, those that an image has not of one pixel; x and y may be the gradients."""
    if isinstance(op, AdaptivePool):
        windows = [Window(longest, 0) for longest in op.windows(spec_of(x))]  # a stride of 0 says adaptive
    else:
        windows = [op.window(axis, spec_of(x)) or Window(1) for axis in range(1, x.ndim - 1)]
    sizes = [
        (extent, out, window.kernel, window.stride, window.before)
        for extent, out, window in zip(x.shape[1:-1], y.shape[1:-1], windows, strict=True)
    ]
    return [(1, 1, 1, 1, 0)] * (3 - len(sizes)) + sizes
