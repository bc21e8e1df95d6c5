"""How operands are described to the C kernels: flat views, layouts of strided loop nests, kernels by dtype.

Everything here happens when a pass is bound; a bound pass is a `functools.partial` over these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pydtconv._ext import elem
from pydtconv.ops.base import Call, Pass, Spec

FLOATS = ("float32", "float64")
_FUSED = {"float32": "float", "float64": "double"}
MAX_DIMS = 8

BINARY_MULTIPLY = 2
REDUCE = {"sum": 0, "maximum": 1, "minimum": 2, "dot": 3}


def kernel(function: Any, dtype: Any) -> Callable[..., None]:
    """The specialization of a fused Cython function for a dtype."""
    return function[_FUSED[np.dtype(dtype).name]]


def nothing() -> None:
    """A bound pass that does nothing."""


def adds(p: Pass, i: int) -> bool:
    """Whether a backward pass adds to dx[i]."""
    return bool(p.accumulate) and bool(p.accumulate[i])


def sequence(calls: Sequence[Call]) -> Call:
    """One call that makes all of them in turn."""
    calls = tuple(call for call in calls if call is not nothing)
    if not calls:
        return nothing
    if len(calls) == 1:
        return calls[0]

    def run() -> None:
        for call in calls:
            call()

    return run


def flat(array: np.ndarray | None) -> np.ndarray | None:
    """A one-dimensional view from the array's first element to its last, gaps included."""
    if array is None:
        return None
    if array.size == 0:
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
    if k_shape and kx[-1] == kx2[-1] == ky[-1] == 1:
        pass
    elif not (r_shape and rx[-1] == rx2[-1] == 1):
        r_shape, rx, rx2 = [*r_shape, 1], [*rx, 1], [*rx2, 1]
    return np.array([len(k_shape), len(r_shape), *k_shape, *r_shape, *kx, *rx, *kx2, *rx2, *ky], np.int64)


def reduction_workspace(shape: Sequence[int | None], axes: Sequence[int], dtype: str) -> int:
    """Bytes of workspace of a reduction over `axes` of any array of this shape, a channel slice or not."""
    itemsize = np.dtype(dtype).itemsize
    extents = [extent or 1 for extent in shape]
    y_shape = [1 if d in axes else extent for d, extent in enumerate(extents)]
    sizes = [0]
    for gap in (0, 1):
        x, y = (_imagined(s, itemsize, gap) for s in (extents, y_shape))
        sizes.append(elem.reduce_workspace(reduce_layout(axes, x, None, y), itemsize))
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
    scratch = np.empty(1, np.uint8) if workspace is None or workspace.size == 0 else workspace
    code = REDUCE["dot" if x2 is not None else kind]
    return partial(
        kernel(elem.reduce, x.dtype),
        code,
        accumulate,
        factor,
        reduce_layout(axes, x, x2, y),
        flat(x),
        flat(x2),
        flat(y),
        scratch,
    )


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
    return partial(kernel(elem.copy, x.dtype), factor, accumulate, layout(y.shape, x, y), flat(x), flat(y))


def broadcast_axes(shape: Sequence[int], to: Sequence[int]) -> tuple[int, ...]:
    """The axes of `to` along which an array of `shape` repeats."""
    padded = [1] * (len(to) - len(shape)) + list(shape)
    return tuple(d for d, (a, b) in enumerate(zip(padded, to, strict=True)) if a == 1 and b != 1)


def broadcast_shapes(name: str, *shapes: Sequence[int | None]) -> tuple[int | None, ...]:
    """NumPy's broadcasting, with None for a batch that is not known yet.  Raises ValueError where shapes do not fit."""
    result: list[int | None] = []
    rank = max(len(shape) for shape in shapes)
    for d in range(-rank, 0):
        extents = {shape[d] for shape in shapes if len(shape) >= -d} - {1}
        known = extents - {None}
        if len(known) > 1:
            raise ValueError(
                f"{name}: expected shapes that broadcast together, got {', '.join(map(str, map(tuple, shapes)))}"
            )
        result.append(known.pop() if known else None if extents else 1)
    return tuple(result)


def same_float(name: str, *inputs: Spec) -> str:
    """The one float dtype of the inputs.  Raises ValueError for others or mixed ones."""
    dtypes = [spec.dtype for spec in inputs]
    if dtypes[0] not in FLOATS or len(set(dtypes)) > 1:
        raise ValueError(f"{name}: expected inputs of one dtype, float32 or float64, got {', '.join(dtypes)}")
    return dtypes[0]


def normalize_axes(name: str, axis: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Axes as sorted non-negative numbers; None means all.  Raises ValueError for axes out of range or given twice."""
    axes = tuple(range(rank)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -rank <= a < rank for a in axes):
        raise ValueError(f"{name}: expected axes between {-rank} and {rank - 1}, got {axis}")
    positive = tuple(sorted(a % rank for a in axes))
    if len(set(positive)) != len(positive):
        raise ValueError(f"{name}: expected each axis once, got {axis}")
    return positive
