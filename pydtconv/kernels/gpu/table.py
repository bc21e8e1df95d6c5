"""Functions of the table that have kernels for GPUs (cext/cuda/table.cu)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pydtconv.kernels.base import Call, Kernel, Pass, nothing, sequence
from pydtconv.kernels.gpu.arithmetic import bind_sum_to
from pydtconv.kernels.gpu.arrays import NUMBERS, REALS, aligned, around, numbers_of, part
from pydtconv.kernels.registry import MissingKernelError, register
from pydtconv.ops.base import Spec, outputs_of
from pydtconv.ops.functions.tables.rearranging import numbers
from pydtconv.ops.table_op import RULES, TableOp

#: functions of one argument with kernels of cext/cuda/table.cu, by their codes
UNARY = (
    *("sin", "cos", "tan", "arctan", "sinh", "cosh", "exp2", "expm1", "log10", "log1p", "log2", "erf", "erfc", "fabs"),
    *("floor", "ceil", "trunc"),
)
COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
LOGIC = ("logical_and", "logical_or", "logical_xor")
_TESTS = {"isnan": "is_nan", "isfinite": "is_finite", "logical_not": "logical_not"}
#: inputs that may be of any numbers: the others are float32 or float64, or bool for what computes with truth
_ANY = {"one_hot": (0,), "take": (1,)}
_BOOL = {**dict.fromkeys(LOGIC, (0, 1)), "logical_not": (0,), "where": (0,)}


def is_there(function: str) -> bool:
    """Whether a function of the table has kernels."""
    return (
        function in (*UNARY, *COMPARISONS, *LOGIC, *_TESTS, "one_hot", "stop_gradient", "take", "where")
        or RULES[function].moves
    )


@register(TableOp, device="gpu", dtypes=tuple(NUMBERS))
class TableKernel(Kernel[TableOp]):
    """What moves elements is run on their numbers when it is bound: these tell which element a place gets."""

    def __init__(self, op: TableOp) -> None:
        if not is_there(op.function):
            raise MissingKernelError(f"function {op.function}: expected a kernel for a GPU, got none")
        super().__init__(op)

    def workspace(self, direction: str, *inputs: Spec) -> int:
        function = self.op.function
        for i, spec in enumerate(inputs):
            wanted = NUMBERS if i in _ANY.get(function, ()) else ("bool",) if i in _BOOL.get(function, ()) else REALS
            if spec.dtype not in wanted:
                raise MissingKernelError(
                    f"function {function}: input {i}: expected {', '.join(wanted)} for device {self.device}, got "
                    f"{spec.dtype}"
                )
        out = outputs_of(self.op, *inputs)[0]
        if function == "one_hot" and out.dtype not in REALS:
            raise MissingKernelError(f"function one_hot: expected float32 or float64 of a GPU, got {out.dtype}")
        if direction == "forward" or function != "where" or None in out.shape:
            return 0
        return aligned(out.nbytes) if any(spec.shape != out.shape for spec in inputs[1:]) else 0

    # -- forward ---------------------------------------------------------------------------------------------------

    def forward(self, p: Pass) -> Call:
        y, function, launcher = p.y[0], self.op.function, p.launcher
        if y.size == 0:
            return nothing
        if self.op.rule.moves:
            places = launcher.constant(self._numbers(p.x[0].shape) - 1, np.int32)
            return launcher.each("table.gather", y.dtype, y.size, y.size, places, p.x[0], y)
        if function in UNARY:
            return launcher.each("table.unary_forward", y.dtype, y.size, UNARY.index(function), y.size, p.x[0], y)
        if function in _TESTS:
            dtype = "float32" if function == "logical_not" else p.x[0].dtype
            return launcher.each(f"table.{_TESTS[function]}", dtype, y.size, y.size, p.x[0], y)
        if function == "stop_gradient":
            return launcher.copy(p.x[0], y)
        if function == "take":
            sizes, index = self._taken(p.x[0].shape, p.x[1])
            return launcher.each("table.take", y.dtype, y.size, *sizes, *index, p.x[0], y)
        if function == "one_hot":
            axis = dict(self.op.static)["axis"] % y.ndim
            found, code = numbers_of(p.x[0])
            return launcher.each("table.one_hot", y.dtype, y.size, *around(y.shape, axis), code, found, y)
        layout = launcher.layout(y.shape, *p.x, y)
        if function == "where":
            return launcher.each("table.where", y.dtype, y.size, y.size, layout, *p.x, y)
        kind, kernel = ((COMPARISONS, "compare"), (LOGIC, "logical"))[function in LOGIC]
        dtype = "float32" if function in LOGIC else p.x[0].dtype
        return launcher.each(f"table.{kernel}", dtype, y.size, kind.index(function), y.size, layout, *p.x, y)

    def _numbers(self, shape: tuple[int, ...]) -> np.ndarray:
        """For each place of the result the number, from 1, of the element that it gets; 0 for none."""
        if math.prod(shape) >= 1 << 31:
            raise MissingKernelError(f"function {self.op.function}: expected less than 2^31 elements, got {shape}")
        return numbers(self.op.rule.forward, shape, self.op.static)

    def _taken(self, shape: tuple[int, ...], index: Any) -> tuple[tuple[int, int, int, int], tuple[int, Any]]:
        """What the kernels of take are told: outer, extent, count, inner; the type of the numbers, and these."""
        axis = dict(self.op.static)["axis"]
        outer, extent, inner = (1, math.prod(shape), 1) if axis is None else around(shape, axis)
        found, code = numbers_of(index)
        return (outer, extent, index.size, inner), (code, found)

    # -- backward --------------------------------------------------------------------------------------------------

    def backward(self, p: Pass) -> Call:
        function, launcher, dy = self.op.function, p.launcher, p.dy[0]
        if function == "where":
            return sequence([self._chosen(p, i) for i in (1, 2) if p.dx[i] is not None and p.dx[i].size])
        dx = p.dx[0]
        if dx is None or dx.size == 0:
            return nothing
        if self.op.rule.moves:
            places = self._numbers(dx.shape) - 1
            order = np.argsort(places, kind="stable")
            ends = np.searchsorted(places[order], np.arange(dx.size + 1))
            given = [launcher.constant(each, np.int32) for each in (ends, order if order.size else np.zeros(1))]
            return launcher.each("table.gather_backward", dx.dtype, dx.size, dx.size, *given, dy, p.adds(0), dx)
        if function == "take":
            sizes, index = self._taken(dx.shape, p.x[1])
            return launcher.each("table.take_backward", dx.dtype, dx.size, *sizes, *index, dy, p.adds(0), dx)
        v = p.y[0] if self.op.rule.reads_y else p.x[0]
        arguments = (UNARY.index(function), dx.size, v, dy, p.adds(0), dx)
        return launcher.each("table.unary_backward", dx.dtype, dx.size, *arguments)

    def _chosen(self, p: Pass, i: int) -> Call:
        """The gradient of an operand of where, summed where it was broadcast."""
        dy, dx, launcher = p.dy[0], p.dx[i], p.launcher
        if dy.size == 0:
            return nothing if p.adds(i) else launcher.fill(dx, 0.0)
        direct = dx.shape == dy.shape
        out = dx if direct else part(p.workspace, 0, dy.shape, dy.dtype, dy.itemsize)
        layout = launcher.layout(dy.shape, p.x[0], dy, out)
        arguments = (i == 1, direct and p.adds(i), dy.size, layout, p.x[0], dy, out)
        term = launcher.each("table.where_backward", dy.dtype, dy.size, *arguments)
        return term if direct else sequence([term, bind_sum_to(launcher, out, dx, accumulate=p.adds(i))])
