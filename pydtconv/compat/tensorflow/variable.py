"""`tf.Variable`: a variable with the methods that TensorFlow's has."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.compat.tensorflow.arrays import Array, Count, Extents, Number, array
from pydtconv.compat.tensorflow.specs import Shape
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.graph import Tensor as RecordedTensor
from pydtconv.graph.ir.variable import Variable as BaseVariable


class Value(Array):
    """The value of a variable: an array for Keras, which also can be called, as TensorFlow's `value()`."""

    _read: Any = None

    def __call__(self) -> Any:
        return self._read()


class _AnyTensor(type):
    """Lets arrays, scalars and what is recorded be instances, and variables not."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (Array, Count, Extents, Number, RecordedTensor))


class Tensor(metaclass=_AnyTensor):
    """What a script asks by isinstance(x, tf.Tensor)."""


class _AnyVariable(type):
    """Lets all variables be instances, as the weights of layers are in TensorFlow."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, BaseVariable)


class Variable(BaseVariable, metaclass=_AnyVariable):
    """A variable with this value (or what a function without arguments gives)."""

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        is_function = callable(initial_value) and not isinstance(initial_value, Array)
        found = np.array(array(initial_value() if is_function else initial_value, dtype))
        super().__init__(found, found.shape, found.dtype.name, trainable is not False, name=name or "Variable")
        self.constraint = constraint

    @property
    def value(self) -> Any:
        """The value, as an attribute or a method."""
        found: Any = super().value
        if found is self and not tracing.changed_by().in_layer:
            found = self.array  # only as a method, which gives what stands for the value
        if isinstance(found, np.ndarray):
            value = found.view(Value)
            value._read = self.read_value
            return value
        return found

    @value.setter
    def value(self, array: np.ndarray) -> None:
        vars(BaseVariable)["value"].fset(self, array)

    def read_value(self) -> Any:
        """The value, as a tensor that gradients go through."""
        return array(ops.copy(self))

    def get_shape(self) -> Shape:
        """The shape."""
        return Shape(self.shape)
