"""`TableOp`: any function of a table of NumPy functions, with its gradient.

A row of the table is a `Rule`: what is computed, the gradient, the output's shape and dtype.  One kernel runs them all
(pydtconv/kernels/cpu/numpy_functions.py).  What they allocate is NumPy's; functions that training spends its time in
have operators of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pydtconv import config
from pydtconv.dtypes import BFLOAT16, COMPLEX, name_of, real
from pydtconv.extents import LARGEST
from pydtconv.ops.base import Op, Retained, Spec
from pydtconv.ops.checks import FLOATING

__all__ = ["TableOp"]

Shape = tuple[int, ...]


class Backward(NamedTuple):
    """What a gradient is made of: dy (None where an output has none), inputs, outputs, the inputs' shapes.

    x and y are None where the rule says that it does not read them.
    """

    dy: tuple[Any, ...]
    x: tuple[Any, ...]
    y: tuple[Any, ...]
    shapes: tuple[Shape, ...]


def no_gradient(backward: Backward, **static: Any) -> Any:
    """The gradient of what has none: steps, comparisons, indices."""
    raise AssertionError("asked for the gradient of a step")


@dataclass(frozen=True)
class Rule:
    """A row: forward(*arrays, **static), an array or a tuple of them.

    gradient(backward, **static): the gradient of each input, or None for one without; `no_gradient` where it is zero,
    None where there is one that is not here, so that asking for it raises.
    shape(*shapes, **static): that of the output, or a tuple of shapes; by default all inputs broadcast together.
    dtype: a kind of `result_dtype`, or a tuple with one for each output.
    reads_x, reads_y: whether the gradient reads inputs and outputs.
    narrow: whether its result has elements of the inputs, zeros, or what bfloat16 holds as well, or an image that is
    resized: of bfloat16 alone it is bfloat16.
    linear: operands in which it is linear, all together; its gradient reads the others.
    moves: whether it moves elements of its one input, leaves some out, or fills with zeros, and nothing else.
    onnx: the operator of ONNX that it is, where that has the same inputs and no attributes.
    lacks: why the gradient cannot be differentiated again.
    """

    forward: Callable[..., Any]
    gradient: Callable[..., Any] | None = None
    shape: Callable[..., Any] | None = None
    dtype: str | tuple[str, ...] = "float"
    reads_x: bool = True
    reads_y: bool = False
    narrow: bool = False
    linear: tuple[int, ...] = ()
    moves: bool = False
    onnx: str = ""
    lacks: str = ""


#: settings of rules that are numbers of elements, as `Op.extent_fields` are those of an operator, and the least of them
EXTENTS = {
    **dict.fromkeys(("block_size", "dilation", "fft_length", "kernel_size", "length", "output_size", "size"), 1),
    **dict.fromkeys(("sequence_length", "sequence_stride", "stride", "strides", "top_paths"), 1),
    **dict.fromkeys(("num_classes", "num_segments", "padding", "repeats", "shape"), 0),
    **dict.fromkeys(("decimals", "filters", "k", "offset"), -LARGEST),
}

#: rules by name of the function
RULES: dict[str, Rule] = {}


def promoted(dtypes: Sequence[str]) -> str:
    """Keras's common dtype: the widest float where there is one, whatever the integers are; complex as in NumPy."""
    if any(dtype in COMPLEX for dtype in dtypes):
        return "complex128" if {"complex128", "float64"} & set(dtypes) else "complex64"
    floats = {dtype for dtype in dtypes if dtype in FLOATING}
    if floats == {"float16", BFLOAT16}:  # neither holds the other's numbers
        return "float32"
    known = floats - {BFLOAT16}
    if floats and not known:
        return BFLOAT16
    return str(np.result_type(*(known or dtypes)))


def counted(dtype: str) -> str:
    """Keras's dtype of sums of what has this dtype."""
    return {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}.get(dtype, dtype)


def result_dtype(kind: str, dtypes: Sequence[str]) -> str:
    """The dtype of a result by that of the operands.

    kind: "promote": the common one of all operands; "behind the first": of all but operand 0; "numbers": as "promote",
    but int32 for booleans; "integers", "bits": as "numbers" and "promote", but ValueError for others; "floats": as
    "promote", but floatx for integers; "float", "second": the same of operand 0 or 1 alone; "wide float": as "float",
    but float64 for int64; "first": that of operand 0; "count": as "first", but int32 or uint32 for booleans and short
    integers; else a name.
    """
    if kind in ("promote", "behind the first"):
        return promoted(dtypes[kind != "promote" :])
    if kind in ("numbers", "integers", "bits"):
        common = promoted(dtypes)
        if kind != "numbers" and (common in FLOATING or common in COMPLEX):
            raise ValueError(f"expected integers, got operands of {', '.join(dtypes)}")
        if kind == "bits":
            return common
        return "int32" if common == "bool" else common
    if kind in ("float", "floats", "second", "wide float"):
        common = promoted(dtypes) if kind == "floats" else dtypes[kind == "second"]
        if common in FLOATING or common in COMPLEX:
            return common
        return "float64" if (kind, common) == ("wide float", "int64") else config.floatx()
    if kind == "count":
        return counted(dtypes[0])
    return dtypes[0] if kind == "first" else kind


@dataclass(frozen=True)
class TableOp(Op):
    """y = RULES[function].forward(*x, **static)."""

    function: str
    static: tuple[tuple[str, Any], ...] = ()

    dense: ClassVar[bool] = True
    mixes_dtypes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.function not in RULES:
            raise ValueError(f"TableOp: expected the name of a function of the table, got {self.function!r}")
        static = {str(key): value for key, value in self.static}
        if static.get("dtype") is not None:
            static["dtype"] = name_of(static["dtype"])
        object.__setattr__(self, "static", tuple(static.items()))
        if self.rule.gradient is no_gradient:
            object.__setattr__(self, "nondifferentiable", tuple(range(64)))

    def reals(self, count: int) -> tuple[int, ...]:
        """NumPy has no bfloat16: all are read in float32."""
        return tuple(range(count))

    @property
    def lacks(self) -> dict[str, str]:  # type: ignore[override]
        return {"gradient": self.rule.lacks}

    @property
    def rule(self) -> Rule:
        return RULES[self.function]

    @property
    def name(self) -> str:
        return self.function

    @property
    def kind(self) -> str:
        return self.function

    def given_dtype(self, read: str, given: Sequence[str]) -> str:
        """The dtype of a result that is computed in `read` of inputs that were `given` ("": variables, numbers)."""
        narrow = self.rule.narrow and read == real(BFLOAT16)
        kind = self.rule.dtype
        counted = given if kind == "promote" else given[1:] if kind == "behind the first" else given[:1]
        return BFLOAT16 if narrow and {dtype for dtype in counted if dtype in FLOATING} == {BFLOAT16} else read

    def given_extents(self) -> dict[str, Any]:
        return {name: value for name, value in self.static if name in EXTENTS}

    def least_extent(self, name: str) -> int:
        return EXTENTS[name]

    def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        shapes: list[Any] = [spec.shape for spec in inputs]
        axis = dict(self.static).get("axis")
        if isinstance(axis, int) and shapes[0] and not -len(shapes[0]) - 1 <= axis <= len(shapes[0]):
            raise ValueError(f"{self.function}: axis: expected one of {len(shapes[0])} axes, got {axis}")
        rule, dtypes = self.rule, [spec.dtype for spec in inputs]
        try:
            found = (rule.shape or np.broadcast_shapes)(*shapes, **dict(self.static) if rule.shape else {})
        except (ValueError, IndexError, TypeError) as error:
            told = ", ".join(str(tuple(shape)) for shape in shapes)
            raise ValueError(f"{self.function}: got shapes {told}: {error}") from None
        if isinstance(found, list):
            kinds = rule.dtype if isinstance(rule.dtype, tuple) else (rule.dtype,) * len(found)
            return tuple(
                Spec(tuple(shape), self._dtype(kind, dtypes)) for shape, kind in zip(found, kinds, strict=True)
            )
        return Spec(tuple(found), self._dtype(str(rule.dtype), dtypes))

    def _dtype(self, kind: str, dtypes: list[str]) -> str:
        given = dict(self.static).get("dtype")
        try:
            return result_dtype(kind, dtypes) if given is None else given
        except ValueError as error:
            raise ValueError(f"{self.function}: {error}") from None

    def check_differentiable(self) -> None:
        if self.rule.gradient is None:
            raise NotImplementedError(f"ops.{self.function}: has no gradient here, and one is wanted")

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        rule = self.rule
        return Retained(x=tuple(range(len(needs))) if rule.reads_x else (), y=(0,) if rule.reads_y else ())


def sloped(slope: Any, dy: np.ndarray) -> Any:
    """slope * dy, and 0 where the slope is 0: there dy, which may be infinite, is left out."""
    return np.where(np.equal(slope, 0), 0, slope * dy)


def unbroadcast(gradient: np.ndarray, shape: Shape) -> np.ndarray:
    """The sum over the axes along which an array of this shape was repeated."""
    if gradient.shape == tuple(shape):
        return gradient
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    repeated = tuple(d for d, extent in enumerate(shape) if extent == 1 and gradient.shape[d] != 1)
    return gradient.sum(axis=repeated, keepdims=True)
