"""Old attributes of symbolic tensors, variables and layers."""

from __future__ import annotations

from typing import Any

from pydtconv.compat import patches
from pydtconv.compat.keras2 import noticed
from pydtconv.compat.tensorflow.arrays import Shape
from pydtconv.graph.ir.graph import Tensor
from pydtconv.graph.ir.variable import Variable
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import KerasTensor
from pydtconv.layers.input_layer import InputLayer


def shape_of(self: Any) -> Shape:
    """The extents, None where they are open."""
    return Shape(self.shape)


def set_shape(self: Any, shape: Any) -> None:
    """Says what the shape is.  Raises ValueError where it is known to be another one."""
    known, said = tuple(self.shape), tuple(shape)
    if len(known) != len(said) or any(
        a is not None and b is not None and a != b for a, b in zip(known, said, strict=True)
    ):
        raise ValueError(f"set_shape: expected a shape that {known} fits, got {said}")


#: old attributes of layers and what they are now
WEIGHTS = {"W": "kernel", "b": "bias", "running_mean": "moving_mean", "running_std": "moving_variance"}


class OldName:
    """An attribute under its old name; an object's own of this name comes first."""

    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None or self._new not in instance.__dict__:
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._old!r}")
        noticed.once(f"layer.{self._old}", f"layer.{self._old} is an old name: write layer.{self._new}")
        return instance.__dict__[self._new]


def _add_weight(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Takes a name first, as Keras 2 did, and Keras 1's (shape, initializer, name)."""
    if args and (isinstance(args[0], str) or (args[0] is None and len(args) > 1)):
        noticed.once("add_weight", "add_weight(name, shape) is an old form: write add_weight(shape=, name=)")
        kwargs.update(zip(("name", "shape", "dtype", "initializer", "regularizer", "trainable"), args, strict=False))
        args = ()
    if "shape" in kwargs and kwargs["shape"] is not None:
        kwargs["shape"] = tuple(int(extent) for extent in kwargs["shape"])
    for name in ("getter", "use_resource", "synchronization", "partitioner", "collections"):
        kwargs.pop(name, None)
    return original(self, *args, **kwargs)


def _get_extents(self: Any) -> Any:
    return self.__dict__["shape"]


def _set_extents(self: Any, shape: Any) -> None:
    self.__dict__["shape"] = Shape(shape)


def _with_plain_shapes(original: Any, self: Any, method: Any, args: Any, kwargs: Any, find: Any) -> Any:
    """Methods of the script are called with tuples, as their `type(shape) is tuple` asks for."""

    def found(x: Any) -> Any:
        value = find(x)
        return tuple(value) if type(value) is Shape else value

    return original(self, method, args, kwargs, found)


def install() -> None:
    """Gives tensors and layers their old attributes."""
    for cls in (KerasTensor, Tensor, Variable):
        patches.put(cls, "get_shape", shape_of)
        patches.put(cls, "set_shape", set_shape)
    patches.put(KerasTensor, "shape", property(_get_extents, _set_extents))
    patches.put(KerasTensor, "_keras_shape", property(lambda self: tuple(self.shape)))
    patches.put(InputLayer, "input", property(lambda self: self.output))  # Keras 3 gives an empty list
    patches.around(Layer, "_pydt_with_shapes", _with_plain_shapes)
    patches.around(Layer, "add_weight", _add_weight)
    for old, new in WEIGHTS.items():
        patches.put(Layer, old, OldName(old, new))
