"""Checks of what operators are given, and shapes that follow from others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pydtconv.dtypes import BFLOAT16, FLOATING, real
from pydtconv.ops.base import Op, Spec

#: dtypes that arrays keep when operators are applied to them; others become `config.floatx()`
FLOATS = ("float32", "float64")


def same_float(name: str, *inputs: Spec) -> str:
    """The one floating dtype of the inputs.  Raises ValueError for others or mixed ones."""
    dtypes = [spec.dtype for spec in inputs]
    if dtypes[0] not in FLOATING or len(set(dtypes)) > 1:
        raise ValueError(f"{name}: expected inputs of one floating dtype, got {', '.join(dtypes)}")
    return dtypes[0]


def same_real(name: str, x: Spec, *parameters: Spec) -> None:
    """Raises ValueError unless x is floating and the parameters have the dtype that goes with it."""
    check_float(name, "x", x.dtype)
    if any(spec.dtype != real(x.dtype) for spec in parameters):
        told = ", ".join(spec.dtype for spec in parameters)
        raise ValueError(f"{name}: expected parameters of {real(x.dtype)} because x is {x.dtype}, got {told}")


def read_as(op: Op, inputs: Sequence[Spec], weak: Sequence[bool]) -> list[str]:
    """The dtype in which an operator reads each of its inputs, where some of them are bfloat16.

    Parameters and statistics (`Op.reals`) are float32 then.  weak: variables, constants and what follows from these
    alone, which are read as what they meet; another input that is float32 or float64 makes all of them that, as NumPy's
    promotion does.
    """
    reals = op.reals(len(inputs))
    images = [i for i, spec in enumerate(inputs) if i not in reals and spec.dtype in FLOATING]
    strong = [inputs[i].dtype for i in images if not weak[i] and inputs[i].dtype != BFLOAT16]
    widest = partial(max, default=BFLOAT16, key=("bfloat16", "float16", "float32", "float64").index)
    if not images:  # an operator of parameters alone: all of them are what the widest that is no constant asks for
        target = widest(inputs[i].dtype for i in reals if not weak[i] and inputs[i].dtype in FLOATING)
    elif BFLOAT16 not in (inputs[i].dtype for i in images):
        target = inputs[images[0]].dtype
    else:
        target = widest(strong)
    found = [target if i in images else spec.dtype for i, spec in enumerate(inputs)]
    for i in reals:
        found[i] = real(target) if inputs[i].dtype in FLOATING else inputs[i].dtype
    return found


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
