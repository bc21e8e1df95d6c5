"""How operands are described to the C kernels: flat views, layouts of strided loop nests, kernels by dtype.

Everything here happens when a pass is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pydtconv import dtypes
from pydtconv._ext import elem
from pydtconv.kernels.base import Call, nothing

#: arrays of bfloat16 come as uint16, its bits
_FUSED = {"float32": "float", "float64": "double", "uint16": "uint16_t"}
MAX_DIMS = 8

REDUCE = {"sum": 0, "maximum": 1, "minimum": 2, "dot": 3}


def typed(function: Any, dtype: Any) -> Callable[..., None]:
    """The specialization of a fused Cython function for a dtype."""
    return function[_FUSED[dtypes.name_of(dtype)]]


def flat(array: np.ndarray | None) -> np.ndarray | None:
    """A one-dimensional view from the array's first element to its last, gaps included."""
    if array is None:
        return None
    if array.size == 0 or array.flags.c_contiguous:
        return array.reshape(-1)
    count = 1 + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)) // array.itemsize
    return as_strided(array, (count,), (array.itemsize,))


def strides_of(array: np.ndarray, shape: Sequence[int]) -> list[int]:
    """Strides in elements with which the array is read as if it had been broadcast to `shape`."""
    missing = len(shape) - array.ndim
    strides = [0 if n == 1 else s // array.itemsize for n, s in zip(array.shape, array.strides, strict=True)]
    return [0] * missing + strides


def merge(shape: Sequence[int], operands: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Drops dimensions of extent 1 and joins neighbours that all operands step through as one."""
    new_shape: list[int] = []
    new: list[list[int]] = [[] for _ in operands]
    for d, extent in enumerate(shape):
        if extent == 1:
            continue
        if new_shape and all(n[-1] == o[d] * extent for n, o in zip(new, operands, strict=True)):
            new_shape[-1] *= extent
            for n, o in zip(new, operands, strict=True):
                n[-1] = o[d]
        else:
            new_shape.append(extent)
            for n, o in zip(new, operands, strict=True):
                n.append(o[d])
    return new_shape, new


def layout(shape: Sequence[int], *arrays: np.ndarray | None) -> np.ndarray:
    """The layout of element-wise kernels: inputs (broadcast to `shape`), then the output; None: not given."""
    present = [strides_of(a, shape) for a in arrays if a is not None]
    extents, merged = merge(shape, present)
    inner = [operand[-1] for operand in merged] if extents else [0]
    if not extents or inner[-1] != 1 or any(stride not in (0, 1) for stride in inner):
        extents = [*extents, 1]
        merged = [[*operand, 1] for operand in merged]
    if len(extents) > MAX_DIMS:
        raise ValueError(f"expected arrays of at most {MAX_DIMS} dimensions, got shape {tuple(shape)}")
    rest = iter(merged)
    zeros = [0] * len(extents)
    strides = [next(rest) if a is not None else zeros for a in arrays]
    return np.array([len(extents), len(arrays), *extents, *(s for operand in strides for s in operand)], np.int64)


def reduce_layout(axes: Sequence[int], x: np.ndarray, x2: np.ndarray | None, y: np.ndarray) -> np.ndarray:
    """The layout of `elem.reduce` over the `axes` of x (and x2); y has x's shape with those axes as 1."""
    kept = [d for d in range(x.ndim) if d not in axes]
    reduced = [d for d in range(x.ndim) if d in axes]
    xs = [s // x.itemsize for s in x.strides]
    x2s = xs if x2 is None else strides_of(x2, x.shape)
    ys = [s // y.itemsize for s in y.strides]
    k_shape, (kx, kx2, ky) = merge([x.shape[d] for d in kept], [[s[d] for d in kept] for s in (xs, x2s, ys)])
    r_shape, (rx, rx2) = merge([x.shape[d] for d in reduced], [[s[d] for d in reduced] for s in (xs, x2s)])
    if k_shape and kx[-1] == ky[-1] == 1 != kx2[-1]:  # x2 is not read in runs along what x and y have in runs
        k_shape, kx, kx2, ky = [*k_shape, 1], [*kx, 1], [*kx2, 1], [*ky, 1]
    if k_shape and kx[-1] == kx2[-1] == ky[-1] == 1:
        pass
    elif not (r_shape and rx[-1] == rx2[-1] == 1):
        r_shape, rx, rx2 = [*r_shape, 1], [*rx, 1], [*rx2, 1]
    return np.array([len(k_shape), len(r_shape), *k_shape, *r_shape, *kx, *rx, *kx2, *rx2, *ky], np.int64)


def reduction_workspace(shape: Sequence[int | None], axes: Sequence[int], dtype: str) -> int:
    """Bytes of workspace of a reduction over `axes` of any array of this shape, a channel slice or not."""
    itemsize = dtypes.itemsize(dtype)
    extents = [extent or 1 for extent in shape]
    y_shape = [1 if d in axes else extent for d, extent in enumerate(extents)]
    sizes = [0]
    for gap in (0, 1):
        x, y = (_imagined(s, itemsize, gap) for s in (extents, y_shape))
        sizes.append(elem.reduce_workspace(reduce_layout(axes, x, None, y), dtype))
    return max(sizes)


def _imagined(shape: Sequence[int], itemsize: int, gap: int) -> np.ndarray:
    """An array of this shape, with a gap behind each pixel's channels, that takes no memory and is never read."""
    strides, step = [], itemsize
    for d, extent in reversed(list(enumerate(shape))):
        strides.append(step)
        step *= extent + (gap if d == len(shape) - 1 else 0)
    return as_strided(np.empty(1, f"f{itemsize}"), shape, strides[::-1])


def bind_reduce(
    kind: str,
    axes: Sequence[int],
    x: np.ndarray,
    y: np.ndarray,
    workspace: np.ndarray | None,
    *,
    x2: np.ndarray | None = None,
    factor: float = 1.0,
    accumulate: bool = False,
) -> Call:
    """y (+)= factor * reduction of x (or of x * x2) over axes; y has x's shape with the axes as 1."""
    if x.size == 0:
        return partial(y.fill, 0) if not accumulate else nothing
    code = REDUCE["dot" if x2 is not None else kind]
    places = reduce_layout(axes, x, x2, y)
    call: Call = elem.bind_reduce(code, accumulate, factor, places, flat(x), flat(x2), flat(y), workspace)
    return call


def bind_copy(x: np.ndarray, y: np.ndarray, factor: float = 1.0, accumulate: bool = False) -> Call:
    """y (+)= factor * x, x broadcast to y's shape; nothing where both are the same memory."""
    if x.size == 0 or y.size == 0:
        return nothing
    if (
        not accumulate
        and factor == 1
        and x.ctypes.data == y.ctypes.data
        and x.strides == y.strides
        and x.shape == y.shape
    ):
        return nothing
    call: Call = elem.bind_copy(factor, accumulate, layout(y.shape, x, y), flat(x), flat(y))
    return call


def broadcast_axes(shape: Sequence[int], to: Sequence[int]) -> tuple[int, ...]:
    """The axes of `to` along which an array of `shape` repeats."""
    padded = [1] * (len(to) - len(shape)) + list(shape)
    return tuple(d for d, (a, b) in enumerate(zip(padded, to, strict=True)) if a == 1 and b != 1)
