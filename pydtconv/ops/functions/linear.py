"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.ops.functions.operands import as_integers, of_one_dtype
from pydtconv.ops.functions.shape import expand_dims, squeeze
from pydtconv.ops.linear import Dense, MatMul

__all__ = ["dot", "matmul"]


def matmul(x1: Any, x2: Any) -> Any:
    """The matrix product over the last axis of x1 and the last but one of x2; leading axes broadcast.

    x1: (..., m, k) or (k,).  x2: (..., k, n) or (k,).  Returns (..., m, n), without the axis of a vector; of arrays of
    integers, integers.
    """
    whole = as_integers(x1, x2)
    if whole is not None:
        return np.asarray(np.matmul(*whole))
    x1, x2 = of_one_dtype(x1, x2)
    if len(x1.shape) == 1:
        y = matmul(expand_dims(x1, 0), x2)
        return squeeze(y, -2 if len(x2.shape) > 1 else 0)
    if len(x2.shape) == 1:
        return squeeze(matmul(x1, expand_dims(x2, 1)), -1)
    return Dense()(x1, x2) if len(x2.shape) == 2 else MatMul()(x1, x2)


def dot(x1: Any, x2: Any) -> Any:
    """The sum of products over the last axis of x1 and the last but one of x2, or its only one; numbers multiply.

    x1: (..., k).  x2: (..., k, n) or (k,).  Returns x1's other axes, then x2's.
    """
    from pydtconv.ops.functions.arithmetic import multiply

    whole = as_integers(x1, x2)
    if whole is not None:
        return np.asarray(np.dot(*whole))
    x1, x2 = of_one_dtype(x1, x2)
    if not x1.shape or not x2.shape:
        return multiply(x1, x2)
    if len(x1.shape) == 1 or len(x2.shape) <= 2:
        return matmul(x1, x2) if len(x2.shape) <= 2 or len(x1.shape) > 2 else _dot(x1, x2)
    return _dot(x1, x2)


def _dot(x1: Any, x2: Any) -> Any:
    from pydtconv.ops.functions.einsum import einsum

    lead = "abcdefg"[: len(x1.shape) - 1]
    other = "hijlmno"[: len(x2.shape) - 2]
    return einsum(f"{lead}k,{other}kz->{lead}{other}z", x1, x2)
