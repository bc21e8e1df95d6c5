"""Operators written in Python on NumPy arrays, for layers with a forward and backward of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydtconv.ops.base import Op, Reasons, Retained, Spec
from pydtconv.ops.checks import same_float

__all__ = ["NumpyOp"]


@dataclass(frozen=True)
class NumpyOp(Op):
    """y = forward(*x); dx = backward(dy, *x, y), both on NumPy arrays.

    forward_function: takes the inputs, returns the output. backward_function: takes the gradient of the output, the
    inputs and the output, returns the gradient of the input, or a tuple with one for each input (None where it has
    none); it may be absent where no gradient is wanted. reads_y: whether it needs the output, which is kept for it then
    (else it gets None). shape_function: takes the inputs' shapes (the batch may be
    None), returns the output's; by default that of the first input. What these functions allocate is theirs.
    """

    forward_function: Callable[..., Any]
    backward_function: Callable[..., Any] | None = None
    shape_function: Callable[..., Sequence[int | None]] | None = None
    label: str = "numpy"
    reads_y: bool = True

    dense: ClassVar[bool] = True
    replayable: ClassVar[bool] = False  # its functions may draw numbers or count
    mesh: ClassVar[str] = "custom"
    lacks: ClassVar[Reasons] = {"gpu": "it runs NumPy", "onnx": "NumPy's functions have no form there"}

    @property
    def name(self) -> str:
        return self.label

    def infer(self, *inputs: Spec) -> Spec:
        dtype = same_float(self.label, *inputs)
        shape = (
            inputs[0].shape if self.shape_function is None else self.shape_function(*(spec.shape for spec in inputs))
        )
        return Spec(tuple(shape), dtype)

    def check_gradients(self, got: Sequence[Any], expected: Sequence[Any]) -> None:
        """Raises ValueError where gradients of the backward function have other shapes than expected; None is any."""
        if len(got) != len(expected):
            raise ValueError(f"{self.label}: backward: expected {len(expected)} gradients, got {len(got)}")
        for i, (shape, wanted) in enumerate(zip(got, expected, strict=True)):
            if shape != wanted and shape is not None and wanted is not None:
                raise ValueError(f"{self.label}: backward: expected gradient {i} of shape {wanted}, got {shape}")

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=tuple(range(len(needs))), y=(0,) if self.reads_y else ())
