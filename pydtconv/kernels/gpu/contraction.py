"""Contractions as products of batches of matrices by the device's GEMM.

Of the axes, those that all three arrays have are the batch, those that only A and C have are rows, those that only B
and C have are columns, the others depth.  An array is read where it lies if one stride walks each of these; else it is
copied to the workspace first, C from there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pydtconv import dtypes
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.contraction import Operand, operands_of
from pydtconv.kernels.gpu.arrays import aligned, part, register, strided
from pydtconv.ops.base import Op, Spec
from pydtconv.ops.contraction import Contract
from pydtconv.ops.linear import MatMul


def step_of(letters: Sequence[str], sizes: Mapping[str, int], strides: Mapping[str, int]) -> int | None:
    """The one stride that walks these axes, the last one the innermost; None where there is none."""
    kept = [letter for letter in letters if sizes[letter] > 1]
    steps = [strides.get(letter, 0) for letter in kept]
    if any(outer != inner * sizes[letter] for (outer, inner), letter in zip(pairwise(steps), kept[1:], strict=True)):
        return None
    return steps[-1] if steps else 0


@dataclass(frozen=True)
class Matrices:
    """An operand as (batch, rows, columns): its letters of each, and the strides; None where it has to be copied."""

    letters: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    strides: Mapping[str, int]
    steps: tuple[int, int, int] | None
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, operand: Operand, sizes: Mapping[str, int], by_rows: bool, *letters: Sequence[str]) -> Matrices:
        """by_rows: whether columns have to lie together; else rows may instead."""
        steps = [step_of(each, sizes, operand.strides) for each in letters]
        batch, rows, columns = (tuple(each) for each in letters)
        extents = [math.prod(sizes[letter] for letter in each) for each in letters]
        together = steps[2] == 1 or extents[2] == 1 or (not by_rows and (steps[1] == 1 or extents[1] == 1))
        found = None if None in steps or not together else tuple(steps)
        return cls((batch, rows, columns), operand.strides, found, sizes)  # type: ignore[arg-type]

    @property
    def shape(self) -> tuple[int, int, int]:
        batch, rows, columns = (math.prod(self.sizes[letter] for letter in each) for each in self.letters)
        return batch, rows, columns

    def nbytes(self, dtype: str) -> int:
        """Of the copy."""
        return 0 if self.steps else aligned(math.prod(self.shape) * dtypes.itemsize(dtype))

    def axes_of(self, launcher: Any, array: Any) -> Any:
        """The array with one axis for each letter."""
        letters = [letter for each in self.letters for letter in each]
        extents = [self.sizes[letter] for letter in letters]
        return strided(launcher, array, extents, [self.strides.get(letter, 0) for letter in letters])

    def place(self, launcher: Any, array: Any, workspace: Any, start: int) -> Any:
        """The matrices: the array's own, or where their copy is."""
        if self.steps:
            return strided(launcher, array, self.shape, self.steps)
        return part(workspace, start, self.shape, array.dtype, array.itemsize)

    def copied(self, launcher: Any, array: Any, matrices: Any, back: bool, accumulate: bool = False) -> Call:
        """What copies the array to its matrices, or back from them."""
        if self.steps:
            return nothing
        own = self.axes_of(launcher, array)
        copy = matrices.reshape(own.shape)
        return launcher.copy(copy, own, accumulate=accumulate) if back else launcher.copy(own, copy)


@dataclass(frozen=True)
class Products:
    """C = A B, or C = B A where C's rows are those of B (exchanged)."""

    a: Matrices
    b: Matrices
    c: Matrices
    exchanged: bool

    @classmethod
    def of(cls, a: Operand, b: Operand, c: Operand, sizes: Mapping[str, int]) -> Products:
        batch = [letter for letter in c.letters if letter in a.letters and letter in b.letters]
        rows = [letter for letter in c.letters if letter in a.letters and letter not in b.letters]
        columns = [letter for letter in c.letters if letter in b.letters and letter not in a.letters]
        depth = [letter for letter in a.letters if letter in b.letters and letter not in c.letters]
        for own, operand in ((rows, a), (columns, b)):
            # the other operand is the same along these axes: a batch in which it is repeated
            while not batch and None in (step_of(own, sizes, operand.strides), step_of(own, sizes, c.strides)):
                batch.append(own.pop(0))
        exchanged = step_of(columns, sizes, c.strides) != 1 and step_of(rows, sizes, c.strides) == 1
        if exchanged:
            a, b, rows, columns = b, a, columns, rows
        return cls(
            Matrices.of(a, sizes, False, batch, rows, depth),
            Matrices.of(b, sizes, False, batch, depth, columns),
            Matrices.of(c, sizes, True, batch, rows, columns),
            exchanged,
        )

    def workspace(self, dtype: str) -> int:
        return sum(each.nbytes(dtype) for each in (self.a, self.b, self.c))

    def bind(self, launcher: Any, a: Any, b: Any, c: Any, workspace: Any, accumulate: bool) -> Call:
        """c (+)= the contraction of a and b; all dense."""
        arrays = (b, a, c) if self.exchanged else (a, b, c)
        places, start = [], 0
        for how, array in zip((self.a, self.b, self.c), arrays, strict=True):
            places.append(how.place(launcher, array, workspace, start))
            start += how.nbytes(array.dtype.name)
        first = [
            how.copied(launcher, array, place, back=False)
            for how, array, place in zip((self.a, self.b), arrays[:2], places[:2], strict=True)
        ]
        product = launcher.gemm_batched(*places, accumulate=accumulate and self.c.steps is not None)
        last = self.c.copied(launcher, c, places[2], back=True, accumulate=accumulate)
        return sequence([*first, product, last])


@register(Contract, MatMul)
class ContractionKernel(Kernel[Op]):
    """y = a b, da = dy b, db = a dy, each a contraction."""

    def _products(self, *shapes: Sequence[int]) -> list[Products]:
        (a, b, y), sizes = operands_of(self.op, *shapes)
        return [Products.of(*three, sizes) for three in ((a, b, y), (y, b, a), (a, y, b))]

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if any(None in spec.shape or spec.size == 0 for spec in inputs):
            return 0
        found = self._products(*(tuple(extent or 0 for extent in spec.shape) for spec in inputs))
        return max(each.workspace(inputs[0].dtype) for each in (found[:1] if direction == "forward" else found[1:]))

    def forward(self, p: Pass) -> Call:
        (a, b), y = p.x, p.y[0]
        if a.size == 0 or b.size == 0:
            return p.launcher.fill(y, 0.0) if y.size else nothing
        return self._products(a.shape, b.shape)[0].bind(p.launcher, a, b, y, p.workspace, False)

    def backward(self, p: Pass) -> Call:
        dy, calls = p.dy[0], []
        shapes = [x.shape if x is not None else dx.shape for x, dx in zip(p.x, p.dx, strict=True)]
        for i, dx in enumerate(p.dx):
            if dx is None or dx.size == 0:
                continue
            if dy.size == 0 or p.x[1 - i].size == 0:
                calls += [] if p.adds(i) else [p.launcher.fill(dx, 0.0)]
                continue
            pair = (dy, p.x[1]) if i == 0 else (p.x[0], dy)
            calls.append(self._products(*shapes)[1 + i].bind(p.launcher, *pair, dx, p.workspace, p.adds(i)))
        return sequence(calls)
