"""Kernels of cext/cuda bound to arrays of a device, and numbers that change from step to step.

What a kernel is given: an array, or None for none; an int (bool), which it takes as int64_t; a float, as double.  A
number that differs from one step to the next lies in memory, in an array of `varying`: `refresh` fills all of them
before a step runs, so that a step that was recorded runs with new numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from pydtconv.kernels.base import Call, nothing

#: numbers that are copied at once
TOGETHER = 1024


class _Numbers:
    """An array of the device whose parts hold numbers that change from step to step."""

    def __init__(self, array: Any) -> None:
        self.array, self.used = array, 0
        self._host = np.zeros(array.shape, array.dtype)
        self._fills: list[tuple[slice, Callable[[], Sequence[float]]]] = []

    def take(self, count: int, fill: Callable[[], Sequence[float]]) -> Any:
        own = slice(self.used, self.used + count)
        self.used += count
        self._fills.append((own, fill))
        return self.array[own]

    def now(self) -> np.ndarray:
        """The numbers of the step that comes."""
        for own, fill in self._fills:
            self._host[own] = fill()
        return self._host


class Launcher:
    """Binds the passes of one plan on a device.

    device: an Accelerator.  It keeps the arrays that it makes for them: layouts, constants, numbers that change.
    variant: which kernels the step that comes has, where these differ from step to step.
    """

    def __init__(self, device: Any) -> None:
        self.device = device
        self._kept: list[Any] = []
        self._varying: dict[str, list[_Numbers]] = {}  # by type
        self._before: list[Callable[[], Hashable]] = []
        self.variant: tuple[Hashable, ...] = ()

    def launch(self, kernel: str, dtype: Any, grid: tuple[int, ...], threads: int, *arguments: Any) -> Call:
        """A kernel "file.name" in a dtype, on a grid of blocks of so many threads."""
        sizes = (*grid, 1, 1)[:3]
        return self.device.bind_kernel(kernel, np.dtype(dtype).name, sizes, threads, arguments)

    def each(self, kernel: str, dtype: Any, count: int, *arguments: Any) -> Call:
        """A kernel whose threads share `count` elements (FOR_EACH)."""
        if count == 0:
            return nothing
        blocks, threads = self.device.grid_of_each(count)
        return self.launch(kernel, dtype, (blocks,), threads, *arguments)

    def constant(self, value: Any, dtype: Any = None) -> Any:
        """An array of the device with this value."""
        array = np.ascontiguousarray(value, dtype)
        made = self.device.zeros(array.shape, array.dtype)
        self.device.put(made, array)
        self._kept.append(made)
        return made

    def layout(self, shape: Sequence[int], *operands: Any) -> Any:
        """The layout of element-wise kernels (elementwise.cu); None where all operands are dense and of one shape."""
        strides = [_strides_of(array, shape) for array in operands]
        extents, merged = _merge(shape, strides)
        if len(extents) <= 1 and all(found == [1] * len(extents) for found in merged):
            return None
        return self.constant([len(extents), *extents, *(s for operand in merged for s in operand)], np.int64)

    def offsets(self, shape: Sequence[int], operand: Any) -> Any:
        """The layout of one operand, as reduction.cu takes it."""
        extents, (strides,) = _merge(shape, [_strides_of(operand, shape)])
        return self.constant([len(extents), *extents, *strides], np.int64)

    def varying(self, count: int, fill: Callable[[], Sequence[float]], dtype: Any = np.float64) -> Any:
        """An array of `count` numbers that `fill` gives anew before each step; many of them are one copy."""
        name = np.dtype(dtype).name
        together = self._varying.setdefault(name, [])
        if not together or together[-1].used + count > together[-1].array.size:
            together.append(_Numbers(self.device.zeros((max(count, TOGETHER),), dtype)))
        return together[-1].take(count, fill)

    def before(self, call: Callable[[], Hashable]) -> None:
        """Has something called before each step, ahead of `varying`; it returns which kernels it has in the step."""
        self._before.append(call)

    def refresh(self) -> None:
        """Fills the numbers of the step that comes."""
        self.variant = tuple(call() for call in self._before)
        for together in self._varying.values():
            for numbers in together:
                self.device.put(numbers.array, numbers.now())

    # -- what many kernels use -------------------------------------------------------------------------------------

    def copy(self, x: Any, y: Any, factor: float = 1.0, accumulate: bool = False) -> Call:
        """y (+)= factor * x, x broadcast to y's shape; nothing where both are the same memory."""
        same = x.data.ptr == y.data.ptr and x.strides == y.strides and x.shape == y.shape
        if y.size == 0 or (same and factor == 1 and not accumulate):
            return nothing
        layout = self.layout(y.shape, x, y)
        return self.each("elementwise.copy", y.dtype, y.size, float(factor), accumulate, y.size, layout, x, y)

    def fill(self, y: Any, value: float) -> Call:
        return self.each("elementwise.fill", y.dtype, y.size, float(value), y.size, self.layout(y.shape, y), y)

    def gemm(self, a: Any, b: Any, out: Any, accumulate: bool = False) -> Call:
        """out (+)= a @ b for matrices whose rows, or columns, are contiguous."""
        if out.size == 0:
            return nothing
        if a.shape[1] == 0:
            return nothing if accumulate else self.fill(out, 0.0)
        return self.device.bind_gemm(a, b, out, accumulate)

    def gemm_batched(self, a: Any, b: Any, out: Any, accumulate: bool = False) -> Call:
        """out (+)= a @ b for equally distant matrices (batch, rows, columns) with contiguous rows or columns."""
        return self.device.bind_gemm_batched(a, b, out, accumulate)

    def column_parts(self, rows: int) -> int:
        """Parts that the rows of a matrix are cut into by the kernels of columns.cu."""
        return max(1, min(self.device.most_parts, -(-rows // 64)))


def _strides_of(array: Any, shape: Sequence[int]) -> list[int]:
    missing = len(shape) - array.ndim
    strides = [0 if n == 1 else s // array.itemsize for n, s in zip(array.shape, array.strides, strict=True)]
    return [0] * missing + strides


def _merge(shape: Sequence[int], operands: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Drops axes of extent 1 and joins neighbours that all operands step through as one."""
    extents: list[int] = []
    merged: list[list[int]] = [[] for _ in operands]
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        if extents and all(m[-1] == o[axis] * extent for m, o in zip(merged, operands, strict=True)):
            extents[-1] *= extent
            for m, o in zip(merged, operands, strict=True):
                m[-1] = o[axis]
        else:
            extents.append(extent)
            for m, o in zip(merged, operands, strict=True):
                m.append(o[axis])
    return extents, merged
