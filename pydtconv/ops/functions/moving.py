"""Operators that move elements, on integers and booleans: NumPy's, where those on floats have a kernel of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.dtypes import FLOATING, name_of
from pydtconv.hooks import as_result
from pydtconv.ops.base import Op, Spec
from pydtconv.ops.functions.operands import is_symbolic
from pydtconv.ops.resize import Pad
from pydtconv.ops.shape import Concatenate, Slice, Transpose
from pydtconv.ops.table_op import RULES, Rule, TableOp, no_gradient

_NAME = "elements moved"


def moved(op: Op, *xs: Any) -> Any:
    """The operator's result, in the dtype of its inputs, which have one."""
    if isinstance(op, Slice) and isinstance(xs[0], np.ndarray):
        found = np.asarray(xs[0])[op.bounds(xs[0].shape)]  # not by the array's own indexing, which may come here
        if not found.size:  # an array may be empty, a tensor of a graph may not
            return as_result(found.copy())
    if name_of(xs[0].dtype) in FLOATING:
        return op(*xs)
    if any(map(is_symbolic, xs)):
        return TableOp(_NAME, (("op", op),))(*xs)
    _shape(*(x.shape for x in xs), op=op)
    return as_result(_forward(*xs, op=op))


def _shape(*shapes: tuple[int, ...], op: Op) -> tuple[int, ...]:
    found = op.infer(*(Spec(tuple(shape), "float32") for shape in shapes))
    assert isinstance(found, Spec)
    return found.shape  # type: ignore[return-value]


def _forward(*xs: np.ndarray, op: Op) -> np.ndarray:
    x = xs[0]
    if isinstance(op, Transpose):
        return np.transpose(x, op.order(x.ndim))
    if isinstance(op, Slice):
        return x[op.bounds(x.shape)]
    if isinstance(op, Concatenate):
        return np.concatenate(xs, op.axis)
    assert isinstance(op, Pad)
    filled = {"constant_values": op.value} if op.mode == "constant" else {}
    return np.pad(x, op.padding, op.mode, **filled)  # type: ignore[call-overload]


RULES[_NAME] = Rule(_forward, no_gradient, _shape, "first")
