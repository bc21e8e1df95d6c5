"""Rows of a table by their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.ops.base import Op, Retained, Spec, functions
from pydtconv.ops.checks import check_float

__all__ = ["TakeRows"]


@dataclass(frozen=True)
class TakeRows(Op):
    """y[...] = table[index[...]]; index of any shape and numeric dtype, table (rows, width), y (..., width).

    Numbers are rounded towards zero.  Outside of the table they are an error when it runs; on a device with memory of
    its own that is one where index is fed, and else the rows are NaN.
    """

    accumulates: ClassVar[tuple[int, ...]] = (1,)
    nondifferentiable: ClassVar[tuple[int, ...]] = (0,)
    dense: ClassVar[bool] = True

    def infer(self, *inputs: Spec) -> Spec:
        index, table = inputs
        check_float("TakeRows", "table", table.dtype)
        if len(table.shape) != 2:
            raise ValueError(f"TakeRows: table: expected (rows, width), got shape {table.shape}")
        return Spec((*index.shape, table.shape[1]), table.dtype)

    def kernel_dtype(self, *inputs: Spec) -> str:
        return inputs[1].dtype

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(0,))

    def gradient(self, x: Sequence[Any], y: Any, dy: Any) -> Sequence[Any]:
        index, table = x
        flat = functions.reshape(functions.cast(index, "int32"), (-1,))
        return [None, functions.segment_sum(functions.reshape(dy, (-1, table.shape[1])), flat, table.shape[0])]
