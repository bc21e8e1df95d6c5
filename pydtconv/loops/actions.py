"""What happens in a recording beside operators: steps of optimizers, assignments, updates and results of metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.dtypes import BFLOAT16, from_bits
from pydtconv.engine.workspace import Workspace
from pydtconv.graph.ir.deferred import Deferred
from pydtconv.graph.ir.graph import Tensor
from pydtconv.graph.ir.variable import Variable
from pydtconv.metrics.metric import given_to

#: the arrays of tensors
Values = Mapping[Tensor, np.ndarray]


class Action:
    """Something that happens after the operators of a stage."""

    def tensors(self) -> Iterable[Tensor]:
        """What it reads."""
        return ()

    def changes(self) -> Iterable[Variable]:
        """The variables that it changes and operators may read."""
        return ()

    def run(self, values: Values, workspace: Workspace, own: bool = False) -> None:
        """own: of a step of an optimizer, see `Workspace.step`."""
        raise NotImplementedError


@dataclass(eq=False)
class Apply(Action):
    """A step of an optimizer, by gradients that are tensors."""

    optimizer: Any
    gradients: Sequence[Any]
    variables: Sequence[Variable]

    def tensors(self) -> Iterable[Tensor]:
        return [gradient for gradient in self.gradients if isinstance(gradient, Tensor)]

    def changes(self) -> Iterable[Variable]:
        return self.variables

    def run(self, values: Values, workspace: Workspace, own: bool = False) -> None:
        gradients = [np.asarray(read(gradient, values)) for gradient in self.gradients]
        workspace.apply(self.optimizer, gradients, self.variables, own)
        for variable in self.variables:  # tapes of other blocks may have read it
            variable.version += 1


@dataclass(eq=False)
class Assign(Action):
    """variable = value; sign 1 or -1: += or -=."""

    variable: Variable
    value: Any
    sign: int | None

    def tensors(self) -> Iterable[Tensor]:
        return [self.value] if isinstance(self.value, Tensor) else ()

    def changes(self) -> Iterable[Variable]:
        return [self.variable]

    def run(self, values: Values, workspace: Workspace, own: bool = False) -> None:
        value = read(self.value, values)
        if workspace.sharing is not None:
            value = workspace.sharing.assigned(self.variable, np.asarray(value))
        self.variable.assign(value if self.sign is None else self.variable.array + self.sign * np.asarray(value))


@dataclass(eq=False)
class Update(Action):
    """A call of a metric's method with arrays."""

    metric: Any
    method: str
    args: Any
    kwargs: Any

    def tensors(self) -> Iterable[Tensor]:
        return [leaf for leaf in tree.flatten((self.args, self.kwargs)) if isinstance(leaf, Tensor)]

    def run(self, values: Values, workspace: Workspace, own: bool = False) -> None:
        found = tree.map_structure(lambda leaf: read(leaf, values), (self.args, self.kwargs))
        args, kwargs = given_to(self.metric, found)
        if workspace.sharing is not None:
            workspace.sharing.update(self, args, kwargs)
        else:
            getattr(self.metric, self.method)(*args, **kwargs)


@dataclass(eq=False)
class Call(Action):
    """A call without arguments, whose result the code goes on with."""

    call: Callable[[], Any]
    deferred: Deferred

    def run(self, values: Values, workspace: Workspace, own: bool = False) -> None:
        if workspace.sharing is not None:
            workspace.sharing.settle()
        self.deferred.value = self.call()


def read(value: Any, values: Values) -> Any:
    """The array of a tensor; anything else as it is."""
    if not isinstance(value, Tensor):
        return value
    if value.variable is not None:
        return value.variable.array
    if value.constant is not None:
        return from_bits(value.constant) if value.dtype == BFLOAT16 else value.constant
    return values[value]
