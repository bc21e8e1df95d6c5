"""Einstein's summation: an equation planned into products of two, sums and transpositions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.ops.contraction import Contract
from pydtconv.ops.functions.arithmetic import multiply
from pydtconv.ops.functions.operands import as_integers, as_operand, of_integers, of_one_dtype
from pydtconv.ops.functions.reduction import sum as reduce_sum
from pydtconv.ops.functions.shape import reshape, transpose
from pydtconv.ops.linear import Dense
from pydtconv.ops.parts import exported
from pydtconv.ops.table_op import RULES, Rule, no_gradient

__all__ = exported(numpy="einsum")

_SPARE = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_EINSUM = "einsum of integers"


def _sums(*xs: np.ndarray, subscripts: str) -> np.ndarray:
    return np.einsum(subscripts, *xs)


def _sums_shape(*shapes: tuple[int, ...], subscripts: str) -> tuple[int, ...]:
    inputs, _, output = subscripts.partition("->")
    extents: dict[str, int] = {}
    for letters, shape in zip(inputs.split(","), shapes, strict=True):
        for letter, extent in zip(letters, shape, strict=True):
            known = extents.get(letter, 1)
            if 1 not in (known, extent) and known != extent:
                raise ValueError(f"expected one extent of {letter!r}, got {known} and {extent}")
            extents[letter] = max(known, extent)
    return tuple(extents[letter] for letter in output)


RULES[_EINSUM] = Rule(_sums, no_gradient, _sums_shape, "first")


def einsum(subscripts: str, *operands: Any) -> Any:
    """The sum of products that an equation says: einsum("bqhd,bkhd->bhqk", q, k).

    A letter stands for an axis, `...` for the axes that are left; letters that the result has not are summed.  Without
    `->` the result has the letters that come once, in alphabetical order.  More than two operands are multiplied from
    left to right.  A letter twice in one operand stands for a diagonal.  Raises ValueError for equations that do not
    fit.
    """
    inputs, output = _parsed(subscripts, [len(as_operand(x).shape) for x in operands])
    whole = as_integers(*operands, widens=True)
    if whole is not None:
        return of_integers(_EINSUM, _sums, whole, subscripts=f"{','.join(inputs)}->{output}")
    values = list(of_one_dtype(*operands))
    for i, letters in enumerate(inputs):
        inputs[i], values[i] = _diagonals(letters, values[i])
    while len(values) > 1:
        left, right, rest = inputs[0], inputs[1], inputs[2:]
        wanted = "".join(dict.fromkeys(letter for letter in left + right if letter in "".join([output, *rest])))
        result = output if not rest else wanted
        values[:2] = [_product(left, right, result, *values[:2])]
        inputs[:2] = [result]
    return _single(inputs[0], output, values[0])


def _diagonals(letters: str, x: Any) -> tuple[str, Any]:
    """An operand of which a letter comes twice: the diagonal of these axes, as the last one."""
    while repeated := [letter for letter in letters if letters.count(letter) > 1]:
        first = letters.index(repeated[0])
        second = letters.index(repeated[0], first + 1)
        if x.shape[first] != x.shape[second]:
            raise ValueError(f"einsum: expected one extent of {repeated[0]!r}, got shape {tuple(x.shape)}")
        others = [axis for axis in range(len(letters)) if axis not in (first, second)]
        extent, rest = x.shape[first], [x.shape[axis] for axis in others]
        x = reshape(transpose(x, (*others, first, second)), (*rest, extent * extent))[..., :: extent + 1]
        letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + letters[first]
    return letters, x


def _parsed(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, without `...`."""
    text = subscripts.replace(" ", "")
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ranks):
        raise ValueError(f"einsum: expected an operand for each of {left!r}, got {len(ranks)} operands")
    widest = 0
    for letters, rank in zip(inputs, ranks, strict=True):
        named = len(letters.replace("...", ""))
        if named > rank or (named < rank and "..." not in letters):
            raise ValueError(f"einsum: expected an operand of {named} axes for {letters!r}, got {rank} axes")
        widest = max(widest, rank - named if "..." in letters else 0)
    spare = [letter for letter in _SPARE if letter not in text][:widest]
    if not arrow:
        once = sorted(letter for letter in set(left) - set(",.") if left.count(letter) == 1)
        output = ("..." if "..." in left else "") + "".join(once)
    full = [_without_dots(letters, spare, rank) for letters, rank in zip(inputs, ranks, strict=True)]
    result = output.replace("...", "".join(spare))
    for letters in [*full, result]:
        if not letters.isalpha() and letters:
            raise ValueError(f"einsum: expected letters, commas, ... and ->, got {subscripts!r}")
    if len(set(result)) < len(result):
        raise ValueError(f"einsum: expected each letter once in the result, got {subscripts!r}")
    unknown = set(result) - set("".join(full))
    if unknown:
        raise ValueError(f"einsum: expected letters of the operands in the result, got {subscripts!r}")
    return full, result


def _without_dots(letters: str, spare: list[str], rank: int) -> str:
    count = rank - len(letters.replace("...", ""))
    return letters.replace("...", "".join(spare[len(spare) - count :])) if "..." in letters else letters


def _single(letters: str, output: str, x: Any) -> Any:
    """One operand: sums, then another order."""
    summed = tuple(axis for axis, letter in enumerate(letters) if letter not in output)
    if summed:
        x = reduce_sum(x, summed)
        letters = "".join(letter for letter in letters if letter in output)
    order = tuple(letters.index(letter) for letter in output)
    return x if order == tuple(range(len(order))) else transpose(x, order)


def _product(left: str, right: str, output: str, x: Any, y: Any) -> Any:
    """Two operands."""
    if not left or not right:
        return _single(left + right, output, multiply(x, y))
    left, x = _squeezed(left, right, output, x, y)
    right, y = _squeezed(right, left, output, y, x)
    left, x = _needed(left, set(right) | set(output), x)
    right, y = _needed(right, set(left) | set(output), y)
    dense = _as_dense(left, right, output, x, y)
    if dense is not None:
        rows, shape = dense
        return rows if tuple(rows.shape) == shape else reshape(rows, shape)
    shared = [letter for letter in output if letter in left and letter in right]
    left, x = _shared_first(left, shared, x)
    right, y = _shared_first(right, shared, y)
    result = output
    if output and output[-1] in shared:  # rows of the products have to lie together
        result = "".join(shared) + "".join(letter for letter in output if letter not in shared)
    made = Contract(left, right, result)(x, y)
    return _single(result, output, made)


def _squeezed(letters: str, other: str, output: str, x: Any, y: Any) -> tuple[str, Any]:
    """Without axes of extent 1 that are broadcast along the other operand's."""
    repeated = [
        axis
        for axis, letter in enumerate(letters)
        if letter in other and x.shape[axis] == 1 and y.shape[other.index(letter)] != 1
    ]
    if not repeated:
        return letters, x
    kept = [axis for axis in range(len(letters)) if axis not in repeated]
    return "".join(letters[axis] for axis in kept), reshape(x, tuple(x.shape[axis] for axis in kept))


def _needed(letters: str, wanted: set[str], x: Any) -> tuple[str, Any]:
    """Summed over the axes that nobody else has."""
    kept = "".join(letter for letter in letters if letter in wanted)
    return kept, _single(letters, kept, x)


def _shared_first(letters: str, shared: list[str], x: Any) -> tuple[str, Any]:
    """In another order, where the innermost axis is one that the products are walked along."""
    if not letters or letters[-1] not in shared:
        return letters, x
    order = "".join([*shared, *(letter for letter in letters if letter not in shared)])
    return order, _single(letters, order, x)


def rows_of_dense(subscripts: str, x: Any, w: Any) -> tuple[Any, tuple[int, ...]] | None:
    """x w as (..., n), where an equation of two is that of a dense layer, and the shape that it says; else None."""
    (left, right), output = _parsed(subscripts, [len(x.shape), len(w.shape)])
    return _as_dense(left, right, output, x, w)


def _as_dense(left: str, right: str, output: str, x: Any, w: Any) -> tuple[Any, tuple[int, ...]] | None:
    """x (..., k) w (k, n) as a dense layer computes it, (..., n), and the result's shape; None for other equations.

    Axes of k and of n may be several, which are then next to each other in both.
    """
    depth = [letter for letter in left if letter in right]
    count = len(depth)
    lead, tail = left[: len(left) - count], right[count:]
    if not count or not lead or not tail or left[-count:] != right[:count] or output != lead + tail:
        return None
    if set(lead) & set(right) or set(tail) & set(left) or any(extent is None for extent in w.shape):
        return None
    shape = tuple(x.shape[: len(lead)])
    k, n = math.prod(w.shape[:count]), math.prod(w.shape[count:])
    columns = w if len(w.shape) == 2 else reshape(w, (k, n))
    y = Dense()(x if count == 1 else reshape(x, (*shape, k)), columns)
    return y, (*shape, *w.shape[count:])
