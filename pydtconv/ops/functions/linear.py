"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.ops.functions.operands import as_integers, as_tensor, is_scalar, of_integers, of_one_dtype
from pydtconv.ops.functions.shape import expand_dims, squeeze
from pydtconv.ops.linear import Dense, MatMul
from pydtconv.ops.parts import exported
from pydtconv.ops.table_op import RULES, Rule, no_gradient

__all__ = exported(numpy="dot matmul")

_MATMUL = "matmul of integers"


def _product_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if not a or not b or a[-1] != b[-2:][0]:
        raise ValueError("expected the last extent of the first, and the last but one of the second, to be equal")
    return (*np.broadcast_shapes(a[:-2], b[:-2]), *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


RULES[_MATMUL] = Rule(np.matmul, no_gradient, _product_shape, "first")


def matmul(x1: Any, x2: Any) -> Any:
    """The matrix product over the last axis of x1 and the last but one of x2; leading axes broadcast.

    x1: (..., m, k) or (k,).  x2: (..., k, n) or (k,).  Returns (..., m, n), without the axis of a vector; of integers,
    integers of their common dtype, of int8 int32.
    """
    whole = as_integers(x1, x2, widens=True)
    return product(*((x1, x2) if whole is None else whole))


def product(x1: Any, x2: Any) -> Any:
    """matmul, but int8 stays what it is."""
    whole = as_integers(x1, x2)
    if whole is not None:
        return of_integers(_MATMUL, np.matmul, whole)
    x1, x2 = of_one_dtype(x1, x2)
    if len(x1.shape) == 1:
        y = product(expand_dims(x1, 0), x2)
        return squeeze(y, -2 if len(x2.shape) > 1 else 0)
    if len(x2.shape) == 1:
        return squeeze(product(x1, expand_dims(x2, 1)), -1)
    return Dense()(x1, x2) if len(x2.shape) == 2 else MatMul()(x1, x2)


def dot(x1: Any, x2: Any) -> Any:
    """The sum of products over the last axis of x1 and the last but one of x2, or its only one; numbers multiply.

    x1: (..., k).  x2: (..., k, n) or (k,).  Returns x1's other axes, then x2's.
    """
    from pydtconv.ops.functions.arithmetic import multiply

    if is_scalar(x1) or is_scalar(x2):
        return multiply(*(as_tensor(x) if isinstance(x, int) else x for x in (x1, x2)))
    whole = as_integers(x1, x2)
    x1, x2 = of_one_dtype(x1, x2) if whole is None else whole
    if not x1.shape or not x2.shape:
        return multiply(x1, x2)
    if len(x1.shape) == 1 or len(x2.shape) <= 2:
        return product(x1, x2) if len(x2.shape) <= 2 or len(x1.shape) > 2 else _dot(x1, x2)
    return _dot(x1, x2)


def _dot(x1: Any, x2: Any) -> Any:
    from pydtconv.ops.functions.einsum import einsum

    lead = "abcdefg"[: len(x1.shape) - 1]
    other = "hijlmno"[: len(x2.shape) - 2]
    return einsum(f"{lead}k,{other}kz->{lead}{other}z", x1, x2)
