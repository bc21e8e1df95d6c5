"""`K.function` and `K.gradients`: values of symbolic tensors, and of their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.compat.keras2 import noticed
from pydtconv.compat.tensorflow.arrays import Array
from pydtconv.layers import Input
from pydtconv.layers.base import context
from pydtconv.layers.base.symbolic import KerasTensor
from pydtconv.loops import GradientTape
from pydtconv.models.model import Model


class Phase(int):
    """Whether code runs in training: a number where it is read, and a place among the inputs of a `K.function`."""


_set: list[Phase | None] = [None]


def learning_phase() -> Phase:
    """1 in training, else 0."""
    return Phase(bool(context.training())) if _set[0] is None else _set[0]


def set_learning_phase(value: Any) -> None:
    """Says whether code runs in training: 0, which is how models are called anyway.  Raises for 1."""
    if value not in (0, 1):
        raise ValueError(f"set_learning_phase: expected 0 or 1, got {value!r}")
    if value:
        raise NotImplementedError("set_learning_phase(1) is not here: write model(x, training=True)")
    noticed.once("set_learning_phase", "K.set_learning_phase is an old name: write model(x, training=False)")


#: of each symbolic gradient: itself, the loss, and what it is the gradient by
_made: dict[int, tuple[Any, Any, Any]] = {}


def gradients(loss: Any, variables: Any) -> list[Any]:
    """Symbolic tensors of the gradients of a loss, for `K.function`.

    Raises NotImplementedError in traced code, where a tape is needed.
    """
    noticed.once("gradients", "K.gradients is an old function: write GradientTape")
    if not isinstance(loss, KerasTensor):
        raise NotImplementedError("K.gradients: expected symbolic tensors, as layers give them: write GradientTape")
    found = []
    for variable in tree.flatten(variables):
        shape = tuple(variable.shape)
        gradient = Input(batch_shape=shape, dtype=str(variable.dtype))
        _made[id(gradient.node.operation)] = (gradient, loss, variable)
        found.append(gradient)
    return found


def _sources(outputs: Sequence[Any]) -> list[Any]:
    """The inputs that symbolic tensors follow from, in the order in which they are met."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    left = [x for x in tree.flatten(outputs) if isinstance(x, KerasTensor)][::-1]
    while left:
        x = left.pop()
        node = x.node
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.is_input:
            found[id(node.operation)] = x
        left.extend(node.input_tensors)
    return list(found.values())


class function:
    """`K.function(inputs, outputs)`: a function of arrays that gives the values of outputs, as a list."""

    def __init__(self, inputs: Any, outputs: Any, updates: Any = None, name: str | None = None) -> None:
        noticed.once("function", "K.function is an old function: write Model(inputs, outputs)")
        if updates:
            raise NotImplementedError("K.function: updates: expected none: assign to variables after the call")
        self._places = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        self._inputs = [x for x in self._places if isinstance(x, KerasTensor)]
        self._single = not isinstance(outputs, (list, tuple))
        self._outputs = [outputs] if self._single else list(outputs)
        self._models: dict[Any, Any] = {}

    def __call__(self, inputs: Any) -> Any:
        given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if len(given) != len(self._places):
            raise ValueError(f"K.function: expected {len(self._places)} inputs, got {len(given)}")
        pairs = list(zip(self._places, given, strict=True))
        training = any(bool(value) for place, value in pairs if not isinstance(place, KerasTensor))
        known = {id(x): np.asarray(value, str(x.dtype)) for x, value in pairs if isinstance(x, KerasTensor)}
        found = [self._value(x, known, training) for x in self._outputs]
        return found[0] if self._single else found

    def _value(self, x: Any, known: dict[int, Any], training: bool) -> Any:
        if not isinstance(x, KerasTensor):
            return np.array(x)
        for source in _sources([x]):
            self._gradient(source, known, training)
        values = self._run([x], list(known), known, training)
        return np.array(values[0])

    def _gradient(self, source: Any, known: dict[int, Any], training: bool) -> None:
        """Finds the value of a symbolic gradient that an output follows from."""
        entry = _made.get(id(source.node.operation))
        if entry is None or id(source) in known:
            return
        gradient, loss, variable = entry
        with GradientTape() as tape:
            if isinstance(variable, KerasTensor):
                if id(variable) in known:
                    x = known[id(variable)].view(Array)
                else:
                    x = np.array(self._run([variable], list(known), known, training)[0]).view(Array)
                tape.watch(x)
                given = {**known, id(variable): x}
                value = self._run([loss], [id(variable), *(k for k in known if k != id(variable))], given, training)[0]
            else:
                x = variable
                value = self._run([loss], list(known), known, training)[0]
        found = tape.gradient(value, x)
        if found is None:
            raise ValueError("K.gradients: the loss does not depend on what it is derived by")
        known[id(gradient)] = np.asarray(found)
        self._inputs.append(gradient)

    def _run(self, outputs: list[Any], names: list[int], values: dict[int, Any], training: bool) -> list[Any]:
        """The outputs by a model of those of these inputs that it needs."""
        key = (*(id(x) for x in outputs), *names)
        if key not in self._models:
            by_id = {id(x): x for x in [*self._inputs, *(v for _, _, v in _made.values())]}
            inputs = _needed(outputs, [by_id[name] for name in names])
            self._models[key] = [id(x) for x in inputs], Model(inputs, outputs) if inputs else None
        wanted, model = self._models[key]
        found = model([values[name] for name in wanted], training=training)
        return list(found) if isinstance(found, (list, tuple)) else [found]


def _needed(outputs: list[Any], inputs: list[Any]) -> list[Any]:
    """The inputs that outputs follow from, where each input cuts off what it follows from."""
    cut = {id(x): x for x in inputs}
    found: dict[int, Any] = {}
    seen: set[int] = set()
    left = list(outputs)
    while left:
        x = left.pop()
        if id(x) in cut:
            found[id(x)] = x
            continue
        if id(x) in seen:
            continue
        seen.add(id(x))
        left.extend(x.node.input_tensors)
    return [x for x in inputs if id(x) in found]
