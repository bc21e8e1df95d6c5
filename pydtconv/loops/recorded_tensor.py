"""`Handle`: a tensor of a recording as Python code sees it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.graph.ir.graph import Tensor, current_graph
from pydtconv.graph.ir.numpy_calls import call_ufunc
from pydtconv.graph.ir.variable import Variable
from pydtconv.ops.base import Op


def _is_operand(value: Any) -> bool:
    return isinstance(value, (Tensor, Variable, np.ndarray, np.generic, bool, int, float))


class Handle(Tensor):
    """A tensor of a recording.  What holds a handle may ask for the value; `tensor` is the graph's own tensor.

    Values are there where code runs as it is written.  Where it is traced, asking raises ValueNeededError.
    """

    #: whether its value goes with it
    takes_value_along = False

    def __init__(self, tensor: Tensor) -> None:
        super().__init__(tensor.graph, tensor.spec, tensor.name, tensor.node, tensor.index)
        self.tensor = tensor

    def apply_op(self, op: Op, inputs: Sequence[Any]) -> Any:
        """Adds the op to what is recorded now, also where that is another recording: it then reads the value."""
        graph = current_graph()
        return graph.add(op, inputs) if graph is not None and graph.records else super().apply_op(op, inputs)

    def numpy(self) -> np.ndarray:
        """The value, as an array of its own."""
        return np.array(self.graph.value_of(self))  # type: ignore[attr-defined]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.graph.value_of(self), dtype=dtype)  # type: ignore[attr-defined]

    def known(self) -> np.ndarray:
        """The value for NumPy's functions, once all tapes of the recording are closed; in their blocks TypeError."""
        if self.graph.open_tapes or self.graph.traced:  # type: ignore[attr-defined]
            raise TypeError(
                f"a tensor of shape {self.shape} is recorded: expected functions of keras.ops, got one of NumPy"
            )
        return self.numpy()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return call_ufunc(Handle, ufunc, method, inputs, kwargs)

    def item(self) -> Any:
        """The only element."""
        return self.numpy().item()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        value = self.item()
        if not isinstance(value, int):
            raise TypeError(f"{self} is no index: expected an integer, got {value!r}")
        return value

    def __bool__(self) -> bool:
        return bool(self.item())

    def __eq__(self, other: object) -> Any:
        return ops.equal(self, other) if _is_operand(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return ops.not_equal(self, other) if _is_operand(other) else NotImplemented

    __hash__ = Tensor.__hash__

    def __len__(self) -> int:
        if not self.shape or self.shape[0] is None:
            raise TypeError(f"len() of a tensor of shape {self.shape}")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __format__(self, spec: str) -> str:
        return format(self.item() if not self.shape and spec else self.numpy(), spec)

    def get_shape(self) -> tuple[int | None, ...]:
        """The shape, as TensorFlow gives it."""
        return self.shape

    def __repr__(self) -> str:
        told = self.graph.known(self)  # type: ignore[attr-defined]
        return super().__repr__() if told is None else f"<tensor shape={self.shape} dtype={self.dtype} numpy={told}>"
