"""Old attributes of symbolic tensors, variables, layers and iterators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydtconv import tree
from pydtconv.compat import patches
from pydtconv.compat.keras2 import noticed
from pydtconv.compat.tensorflow.arrays import Shape
from pydtconv.graph.ir.graph import Tensor
from pydtconv.graph.ir.variable import Variable
from pydtconv.layers.base.layer import Layer
from pydtconv.layers.base.symbolic import KerasTensor
from pydtconv.layers.input_layer import InputLayer
from pydtconv.models.model import Model
from pydtconv.preprocessing.iterators import ImageIterator


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


def _one(tensors: Any) -> Any:
    return tensors[0] if len(tensors) == 1 else list(tensors)


def _shapes(tensors: Any) -> Any:
    return tree.map_structure(lambda x: tuple(x.shape), tensors)


#: old attributes that follow from new ones, by class: a function of the object, and what to write
FOUND: dict[type, dict[str, tuple[Callable[[Any], Any], str]]] = {
    Layer: {
        "input_shape": (lambda self: _shapes(self.input), "layer.input.shape"),
        "output_shape": (lambda self: _shapes(self.output), "layer.output.shape"),
        "inbound_nodes": (lambda self: self._inbound_nodes, "layer.input"),
        "get_input_at": (lambda self: lambda i: _one(self._inbound_nodes[i].input_tensors), "layer.input"),
        "get_output_at": (lambda self: lambda i: _one(self._inbound_nodes[i].output_tensors), "layer.output"),
        "get_input_shape_at": (lambda self: lambda i: _shapes(self.get_input_at(i)), "layer.input.shape"),
        "get_output_shape_at": (lambda self: lambda i: _shapes(self.get_output_at(i)), "layer.output.shape"),
    },
    Model: {
        "uses_learning_phase": (lambda self: True, "model(x, training=False)"),
        "updates": (lambda self: [], "nothing: the call of a layer updates its variables"),
        "state_updates": (lambda self: [], "nothing: the call of a layer updates its variables"),
    },
    ImageIterator: {
        "N": (lambda self: self.n, "iterator.n"),
        "nb_sample": (lambda self: self.n, "iterator.n"),
        "nb_class": (lambda self: self.num_classes, "iterator.num_classes"),
    },
}


class Found:
    """An old attribute that follows from new ones; an object's own of this name comes first."""

    def __init__(self, name: str, value: Callable[[Any], Any], instead: str) -> None:
        self._name, self._value, self._instead = name, value, instead

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        found = self._value(instance)
        noticed.once(self._name, f"{self._name} is an old name: write {self._instead}")
        return found


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
    for owner, names in FOUND.items():
        for name, (value, instead) in names.items():
            patches.put(owner, name, Found(name, value, instead))
