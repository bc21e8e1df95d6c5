"""Contractions as many products of matrices, none of whose operands is copied (cext/gemm/batched.c).

Of the axes of C = A B that A gives, those that one stride walks in A and in C are the rows of a product; likewise
columns and depth.  The other axes are walked from product to product: for each matrix C, over those that are summed.
Large products take Strassen's algorithm where a pointwise convolution would (pydtconv/conv/products.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from pydtconv import microkernels  # noqa: F401  (puts the choice of a kernel in place)
from pydtconv._ext import attention as ext
from pydtconv.conv.products import strassen_levels
from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.cpu.rows import flat_of
from pydtconv.kernels.cpu.shape import bind_fill
from pydtconv.kernels.cpu.strided import typed
from pydtconv.kernels.registry import register
from pydtconv.ops.base import Op, Spec
from pydtconv.ops.contraction import Contract
from pydtconv.ops.linear import MatMul

Strides = Mapping[str, int]


@dataclass(frozen=True)
class Operand:
    """A dense array by the letters of its axes.  Axes that repeat another's elements have no letter."""

    letters: str
    strides: Strides

    @classmethod
    def of(cls, letters: Sequence[str], shape: Sequence[int]) -> Operand:
        """letters: one for each axis, empty for an axis that has none."""
        steps, step = {}, 1
        for letter, extent in reversed(list(zip(letters, shape, strict=True))):
            if letter:
                steps[letter] = step
            step *= extent
        return cls("".join(letters), steps)


@dataclass(frozen=True)
class Products:
    """What the library is told: sizes, strides of A and B, rows of C apart, offsets (outer, 1 + 2 inner).

    exchanged: whether C is computed as B A, for its rows are those of B.
    """

    m: int
    n: int
    k: int
    a_strides: tuple[int, int]
    b_strides: tuple[int, int]
    ldc: int
    inner: int
    offsets: np.ndarray
    exchanged: bool

    def workspace(self, dtype: str) -> int:
        """Bytes of the products, by Strassen's algorithm where they take that, and without."""
        return max(self._bytes(dtype, levels) for levels in {0, self._levels(dtype)})

    def levels_within(self, workspace: np.ndarray | None, dtype: str) -> int:
        """Levels of Strassen's algorithm of each product; 0 where the workspace is that of products without."""
        levels = self._levels(dtype)
        return levels if workspace is not None and workspace.nbytes >= self._bytes(dtype, levels) else 0

    def _levels(self, dtype: str) -> int:
        return strassen_levels(self.m, self.n, self.k, dtype)

    def _bytes(self, dtype: str, levels: int) -> int:
        return int(ext.gemm_batched_workspace(len(self.offsets), self.m, self.n, self.k, dtype, levels))


def _run(letters: Sequence[str], sizes: Mapping[str, int], first: Strides, second: Strides) -> list[list[str]]:
    """Runs of letters, each of which one stride walks in both operands, the innermost letter of a run first."""
    runs: list[list[str]] = []
    for letter in sorted(letters, key=lambda letter: first[letter]):
        if runs:
            last = runs[-1]
            extent = math.prod(sizes[one] for one in last)
            if all(steps[letter] == steps[last[0]] * extent for steps in (first, second)):
                last.append(letter)
                continue
        runs.append([letter])
    return runs


def _largest(runs: list[list[str]], sizes: Mapping[str, int]) -> list[str]:
    return max(runs, key=lambda run: math.prod(sizes[letter] for letter in run), default=[])


def _grid(letters: Sequence[str], sizes: Mapping[str, int], strides: Strides) -> np.ndarray:
    """Offsets of all places along these axes, in the order of the letters."""
    total = np.zeros((1,) * len(letters), np.int64)
    for axis, letter in enumerate(letters):
        steps = np.arange(sizes[letter], dtype=np.int64) * strides.get(letter, 0)
        total = total + steps.reshape([-1 if d == axis else 1 for d in range(len(letters))])
    return np.broadcast_to(total, [sizes[letter] for letter in letters]).reshape(-1)


def plan(a: Operand, b: Operand, c: Operand, sizes: Mapping[str, int]) -> Products:
    """How C = A B is computed; every letter is in two of the three, or in all of them."""
    contiguous = min((letter for letter in c.letters if sizes[letter] > 1), key=c.strides.__getitem__, default="")
    exchanged = contiguous in a.letters and contiguous not in b.letters
    if exchanged:
        a, b = b, a
    rows = [letter for letter in c.letters if letter in a.letters and letter not in b.letters]
    columns = [letter for letter in c.letters if letter in b.letters and letter not in a.letters]
    depth = [letter for letter in a.letters if letter in b.letters and letter not in c.letters]
    of_columns = _run(columns, sizes, c.strides, b.strides)
    n_run = of_columns[0] if of_columns and c.strides[of_columns[0][0]] == 1 else []
    m_run = _largest(_run(rows, sizes, c.strides, a.strides), sizes)
    k_run = _largest(_run(depth, sizes, a.strides, b.strides), sizes)
    m, n, k = (math.prod(sizes[letter] for letter in run) for run in (m_run, n_run, k_run))
    taken = {*m_run, *n_run, *k_run}
    outer = [letter for letter in c.letters if letter not in taken]
    inner = [letter for letter in depth if letter not in taken]

    def step(operand: Operand, run: list[str], otherwise: int) -> int:
        return operand.strides[run[0]] if run else otherwise

    places = [_grid([*outer, *inner], sizes, operand.strides) for operand in (a, b)]
    count = math.prod(sizes[letter] for letter in inner)
    offsets = np.empty((places[0].size // count, 1 + 2 * count), np.int64)
    offsets[:, 0] = _grid(outer, sizes, c.strides)
    for i, place in enumerate(places):
        offsets[:, 1 + i :: 2] = place.reshape(-1, count)
    return Products(
        m, n, k, (step(a, m_run, k), step(a, k_run, 1)), (step(b, k_run, n), step(b, n_run, 1)),
        max(step(c, m_run, n), n), count, offsets, exchanged,
    )  # fmt: skip


def bind_products(
    how: Products, a: np.ndarray, b: np.ndarray, c: np.ndarray, workspace: np.ndarray | None, accumulate: bool
) -> Call:
    """c (+)= the contraction of a and b; all dense."""
    if how.exchanged:
        a, b = b, a
    return partial(
        typed(ext.gemm_batched, c.dtype), how.offsets, how.inner, how.m, how.n, how.k, flat_of(a), *how.a_strides,
        flat_of(b), *how.b_strides, flat_of(c), how.ldc, accumulate, how.levels_within(workspace, c.dtype.name),
        workspace,
    )  # fmt: skip


def letters_of(op: Op, *shapes: Sequence[int]) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """The letters of the axes of both operands of a Contract or MatMul, of these shapes, and of the result.

    Leading axes of a product are letters where an operand has them, and none where it is repeated along them.
    """
    if isinstance(op, Contract):
        return op.a, op.b, op.c
    rank = max(map(len, shapes)) - 2
    names = [chr(ord("a") + d) for d in range(rank)]
    extents = [(1,) * (rank - len(shape) + 2) + tuple(shape[:-2]) for shape in shapes]
    full = [max(pair) for pair in zip(*extents, strict=True)]
    own = [
        [name if extent == whole else "" for name, extent, whole in zip(names, mine, full, strict=True)]
        for mine in extents
    ]
    lead = [each[rank - len(shape) + 2 :] for each, shape in zip(own, shapes, strict=True)]
    return [*lead[0], "M", "K"], [*lead[1], "K", "N"], [*names, "M", "N"]


def operands_of(op: Op, *shapes: Sequence[int]) -> tuple[list[Operand], dict[str, int]]:
    """a, b and y of a Contract or MatMul of a and b of these shapes; the extents of their axes."""
    y = op.infer(*(Spec(tuple(shape)) for shape in shapes))
    assert isinstance(y, Spec)
    known = tuple(extent or 0 for extent in y.shape)
    letters = letters_of(op, *shapes)
    sizes: dict[str, int] = {}
    for names, shape in zip(letters, (*shapes, known), strict=True):
        sizes.update((letter, extent) for letter, extent in zip(names, shape, strict=True) if letter)
    return [Operand.of(names, shape) for names, shape in zip(letters, (*shapes, known), strict=True)], sizes


@register(Contract, MatMul)
class ContractionKernel(Kernel[Op]):
    """y and both gradients are contractions of one kind: y = a b, da = dy b, db = a dy."""

    def _plans(self, *shapes: Sequence[int]) -> list[Callable[[], Products]]:
        """How y, da and db are computed."""
        (a, b, y), sizes = operands_of(self.op, *shapes)
        return [partial(plan, *three, sizes) for three in ((a, b, y), (y, b, a), (a, y, b))]

    def workspace(self, direction: str, *inputs: Spec) -> int:
        if any(None in spec.shape or spec.size == 0 for spec in inputs):
            return 0
        plans = self._plans(*(tuple(extent or 0 for extent in spec.shape) for spec in inputs))
        return max(make().workspace(inputs[0].dtype) for make in (plans[:1] if direction == "forward" else plans[1:]))

    def forward(self, p: Pass) -> Call:
        a, b = p.x
        if a.size == 0 or b.size == 0:
            return bind_fill(p.y[0], 0) if p.y[0].size else nothing
        return bind_products(self._plans(a.shape, b.shape)[0](), a, b, p.y[0], p.workspace, accumulate=False)

    def backward(self, p: Pass) -> Call:
        dy = p.dy[0]
        calls: list[Call] = []
        shapes = [x.shape if x is not None else dx.shape for x, dx in zip(p.x, p.dx, strict=True)]
        for i in (0, 1):
            dx = p.dx[i]
            if dx is None or dx.size == 0:
                continue
            if dy.size == 0 or p.x[1 - i].size == 0:
                calls += [] if p.adds(i) else [bind_fill(dx, 0)]
                continue
            how = self._plans(*shapes)[1 + i]()
            pair = (dy, p.x[1]) if i == 0 else (p.x[0], dy)
            calls.append(bind_products(how, *pair, dx, p.workspace, accumulate=p.adds(i)))
        return sequence(calls)
