"""Matrix products."""

from __future__ import annotations

from typing import Any

from pydtconv.ops.functions.operands import of_one_dtype
from pydtconv.ops.functions.shape import expand_dims, squeeze
from pydtconv.ops.linear import Dense, MatMul

__all__ = ["dot", "matmul"]


def matmul(x1: Any, x2: Any) -> Any:
    """The matrix product over the last axis of x1 and the last but one of x2; leading axes broadcast."""
    x1, x2 = of_one_dtype(x1, x2)
    if len(x1.shape) == 1:
        y = matmul(expand_dims(x1, 0), x2)
        return squeeze(y, -2 if len(x2.shape) > 1 else 0)
    if len(x2.shape) == 1:
        return squeeze(matmul(x1, expand_dims(x2, 1)), -1)
    return Dense()(x1, x2) if len(x2.shape) == 2 else MatMul()(x1, x2)


def dot(x1: Any, x2: Any) -> Any:
    """The product of vectors or matrices."""
    return matmul(x1, x2)
