"""Numbers that follow from extents which are not known yet, in functional models: `tf.shape(x)[0]` of a batch."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.graph.ir.graph import Graph, Tensor
from pydtconv.layers.base.symbolic import KerasTensor, Node, Operation, symbolic_leaves
from pydtconv.layers.unknown_extents import PROBES
from pydtconv.ops.base import Spec
from pydtconv.ops.operations import Card, as_operation, card_of

#: dtypes of Python's numbers, as tensorflow has them
_OF_PYTHON = {"i": "int32", "f": "float32"}


class Computed(Operation):
    """A function of extents and numbers.  Its result is a value where a model is replayed, not a tensor."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def call(self, *args: Any, **kwargs: Any) -> Any:
        found = self.function(*args, **kwargs)
        if not isinstance(found, (np.ndarray, np.generic, list, tuple)):
            return found
        values = np.asarray(found)
        return values if values.ndim else values.item()

    def symbolic_call(self, *args: Any, **kwargs: Any) -> OfExtents:
        return OfExtents(self, args, kwargs)


class OfExtents(KerasTensor):
    """The result of a function of extents that are not known yet; functions take it as an extent, too."""

    def __init__(self, operation: Computed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        found = []
        for probe in PROBES:
            with Graph(training=False) as graph:
                found.append(_value(operation, args, kwargs, graph, functools.partial(_filled, probe)))
        shapes = [tuple(np.shape(value)) if not isinstance(value, Tensor) else value.shape for value in found]
        dtype = (
            found[0].dtype if hasattr(found[0], "dtype") else _OF_PYTHON.get(np.asarray(found[0]).dtype.kind, "bool")
        )
        super().__init__(tuple(n if n == m else None for n, m in zip(*shapes, strict=True)), str(dtype))
        Node(operation, args, kwargs, self)

    def _pydt_stand_in(self, graph: Graph, fill: Any) -> Any:
        return _value(self.node.operation, self.node.args, self.node.kwargs, graph, fill)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def apply_function(self, card: Card, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if all(isinstance(leaf, OfExtents) for leaf in symbolic_leaves((args, kwargs))):
            return OfExtents(Computed(card.function), args, kwargs)
        return super().apply_function(card, args, kwargs)


def _filled(extent: int, spec: Spec, leaf: KerasTensor) -> Spec:
    return Spec(tuple(extent if n is None else n for n in spec.shape), spec.dtype)


def _value(operation: Operation, args: Any, kwargs: Any, graph: Graph, fill: Any) -> Any:
    """What the operation gives where extents are filled in."""

    def value_of(leaf: Any) -> Any:
        if isinstance(leaf, OfExtents):
            return leaf._pydt_stand_in(graph, fill)
        return fill(leaf.spec, leaf) if isinstance(leaf, KerasTensor) else leaf

    args, kwargs = tree.map_structure(value_of, (args, kwargs))
    return operation.call(*args, **kwargs)


def _of_python(name: str, reflected: bool) -> Callable[..., Any]:
    compute, function = getattr(operator, name), _FUNCTIONS[name]

    def method(self: OfExtents, *others: Any) -> Any:
        args = (*others, self) if reflected else (self, *others)
        if all(isinstance(leaf, OfExtents) for leaf in symbolic_leaves(args)):
            return OfExtents(Computed(compute), args, {})
        return self.apply_function(card_of(function), args, {})

    return method


_FUNCTIONS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "floordiv": "floor_divide", "truediv": "true_divide",
    "mod": "mod", "pow": "power", "neg": "negative", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal", "getitem": "getitem",
}  # fmt: skip
for _name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow"):
    setattr(OfExtents, f"__{_name}__", _of_python(_name, reflected=False))
    setattr(OfExtents, f"__r{_name}__", _of_python(_name, reflected=True))
for _name in ("neg", "lt", "le", "gt", "ge", "getitem"):
    setattr(OfExtents, f"__{_name}__", _of_python(_name, reflected=False))


def extents(x: KerasTensor) -> tuple[Any, ...]:
    """The extents of a symbolic tensor, with such numbers for those that are not known."""

    def extent(axis: int) -> OfExtents:
        return OfExtents(Computed(lambda tensor: tensor.shape[axis]), (x,), {})

    return tuple(extent(axis) if n is None else n for axis, n in enumerate(x.shape))


def size(x: KerasTensor) -> Any:
    """The number of elements of a symbolic tensor."""
    return functools.reduce(operator.mul, extents(x), 1)


def recorded(functions: dict[str, Any]) -> dict[str, Any]:
    """Functions by name, which are operations of a functional model where they get symbolic tensors or such numbers."""
    return {name: as_operation(Card(name, "ops.tensorflow", each), each.__module__) for name, each in functions.items()}
