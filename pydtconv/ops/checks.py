"""Checks of what operators are given, and shapes that follow from others."""

from __future__ import annotations

from collections.abc import Sequence

from pydtconv.ops.base import Spec

#: dtypes that arrays keep when operators are applied to them; others become `config.floatx()`
FLOATS = ("float32", "float64")

#: floating dtypes; which of them an operator has a kernel for, the registry says
FLOATING = ("float16", "bfloat16", *FLOATS)


def same_float(name: str, *inputs: Spec) -> str:
    """The one floating dtype of the inputs.  Raises ValueError for others or mixed ones."""
    dtypes = [spec.dtype for spec in inputs]
    if dtypes[0] not in FLOATING or len(set(dtypes)) > 1:
        raise ValueError(f"{name}: expected inputs of one floating dtype, got {', '.join(dtypes)}")
    return dtypes[0]


def check_float(op: str, argument: str, dtype: str) -> None:
    """Raises ValueError unless dtype is a floating one."""
    if dtype not in FLOATING:
        raise ValueError(f"{op}: {argument}: expected a floating dtype, got {dtype}")


def check_axis(op: str, axis: int, rank: int) -> int:
    """axis counted from the front.  Raises ValueError when the rank has no such axis."""
    if not -rank <= axis < rank:
        raise ValueError(f"{op}: expected an axis in [{-rank}, {rank}), got axis={axis}")
    return axis % rank


def normalize_axes(name: str, axis: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Axes as sorted non-negative numbers; None means all.  Raises ValueError for axes out of range or given twice."""
    axes = tuple(range(rank)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -rank <= a < rank for a in axes):
        raise ValueError(f"{name}: expected axes between {-rank} and {rank - 1}, got {axis}")
    positive = tuple(sorted(a % rank for a in axes))
    if len(set(positive)) != len(positive):
        raise ValueError(f"{name}: expected each axis once, got {axis}")
    return positive


def fits(shape: tuple[int | None, ...], wanted: tuple[int | None, ...]) -> bool:
    """Whether shapes are equal where both are known."""
    same = (a == b or a is None or b is None for a, b in zip(shape, wanted, strict=False))
    return len(shape) == len(wanted) and all(same)


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
