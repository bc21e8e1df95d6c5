"""Variables: the parameters and states of layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv.kernels.eager import compute
from pydtconv.ops.base import Op, Spec
from pydtconv.ops.operators import Operators


class Variable(Operators):
    """An array that lives from step to step: a weight, a moving average, an optimizer's slot.

    `value` is the array itself.  A training plan moves it into a flat array (see parameter_store.py) and the
    variable then holds a view of that; so take `value` afresh instead of keeping it, and write through `assign`.
    """

    def __init__(
        self,
        initializer: Callable[..., Any] | Any,
        shape: Sequence[int] | None = None,
        dtype: str = "float32",
        trainable: bool = True,
        name: str = "variable",
        copy: bool = True,
    ) -> None:
        """initializer: a callable (shape, dtype) -> array, or an array.  copy: False to keep that array itself."""
        if callable(initializer):
            if shape is None:
                raise ValueError(f"variable {name!r}: a callable initializer needs a shape")
            initializer = initializer(tuple(shape), dtype=dtype)
        self.value: np.ndarray = np.array(initializer, dtype=dtype, order="C", copy=True if copy else None)
        if shape is not None and self.value.shape != tuple(shape):
            raise ValueError(f"variable {name!r}: expected shape {tuple(shape)}, got {self.value.shape}")
        self.name = name
        self.path = name
        self.trainable = trainable
        self.regularizer: Any = None
        self.constraint: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def dtype(self) -> str:
        return self.value.dtype.name

    @property
    def spec(self) -> Spec:
        return Spec(self.shape, self.dtype)

    def numpy(self) -> np.ndarray:
        """A copy of the value."""
        return self.value.copy()

    def assign(self, value: Any) -> None:
        """Overwrites the value in place.  Raises ValueError when the shape differs."""
        array = np.asarray(value, dtype=self.value.dtype)
        if array.shape != self.value.shape:
            raise ValueError(f"variable {self.path!r}: expected shape {self.value.shape}, got {array.shape}")
        self.value[...] = array

    def apply_op(self, op: Op, inputs: Sequence[Any]) -> Any:
        """Adds the op to the graph that is being traced, or computes at once when there is none."""
        from pydtconv.graph.ir.graph import current_graph

        for other in inputs:
            if hasattr(other, "apply_op") and not isinstance(other, Variable):
                return other.apply_op(op, inputs)
        graph = current_graph()
        if graph is not None:
            return graph.add(op, inputs)
        return compute(op, *(value.value if isinstance(value, Variable) else value for value in inputs))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype=dtype)

    def __repr__(self) -> str:
        return f"<Variable {self.path} shape={self.shape} dtype={self.dtype} trainable={self.trainable}>"
