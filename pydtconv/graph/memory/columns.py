"""Variables of which each process of a group has some columns: equal parts of the last axis.

For whoever reads or assigns such a variable it is whole, as in one process; plans, stores and optimizers have its part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from pydtconv.graph.ir.graph import Graph
from pydtconv.graph.ir.variable import Variable

#: elements of each process that are gathered at a time
_GATHERED = 1 << 20


class Columns:
    """index: this process's place in its group; count: of the group.

    gather: this process's array, and what it is of -> those of all, one after the other.  All must call it.
    """

    def __init__(self, index: int, count: int, gather: Callable[[np.ndarray, str], np.ndarray]) -> None:
        self.index, self.count, self._gather = index, count, gather

    def part(self, whole: np.ndarray) -> np.ndarray:
        """This process's columns."""
        each = whole.shape[-1] // self.count
        return whole[..., self.index * each : (self.index + 1) * each]

    def whole(self, part: np.ndarray, name: str) -> np.ndarray:
        """All columns, in every process."""
        rows, each = math.prod(part.shape[:-1]), part.shape[-1]
        whole, own = np.empty((rows, self.count, each), part.dtype), part.reshape(rows, each)
        step = max(_GATHERED // max(each, 1), 1)
        for start in range(0, rows, step):
            found = self._gather(own[start : start + step], f"the columns of {name}")
            whole[start : start + step] = found.transpose(1, 0, 2)
        return whole.reshape(*part.shape[:-1], self.count * each)


class CutVariable:
    """What a variable has of the others' columns (`Variable.cut`).

    whole: all of it, until a step of training changes the parts; None where processes gather it when they read it.
    """

    def __init__(self, columns: Columns, shape: tuple[int, ...], whole: np.ndarray | None = None) -> None:
        self.columns, self.shape, self.whole = columns, shape, whole

    def of_slot(self) -> CutVariable:
        """The same for an optimizer's slot of the variable."""
        return CutVariable(self.columns, self.shape)

    def array(self, variable: Variable) -> np.ndarray:
        """All of it: to be read, not to be written.  Where `whole` is None, all processes must ask."""
        return self.columns.whole(variable.host_array, variable.path) if self.whole is None else self.whole

    def assign(self, variable: Variable, whole: np.ndarray) -> None:
        variable.host_array[...] = self.columns.part(whole)
        self.whole = None if self.whole is None else _locked(whole.copy())

    def keep(self, variable: Variable) -> None:
        """Gives this process all of it; all must call it."""
        self.whole = _locked(self.array(variable))


def _locked(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def rearrange(variable: Variable, columns: Columns | None, keeps: bool = True) -> None:
    """Leaves this process its columns of a variable, or, with None, makes it whole again.

    keeps: whether it has all of them until the next step of training.
    """
    if variable.cut is not None and variable.cut.columns is not columns:
        whole, variable.cut = variable.array, None
        variable.value = whole.copy()
    if variable.cut is None and columns is not None:
        whole = variable.array
        variable.value = columns.part(whole).copy()
        variable.cut = CutVariable(columns, whole.shape, _locked(whole.view()) if keeps else None)


def make_whole(variables: Iterable[Variable]) -> None:
    """Makes variables whole again, for code that goes past the plans of `fit`."""
    for variable in variables:
        rearrange(variable, None)


def arrange(graph: Graph, columns: Columns | None) -> None:
    """Gives the variables of a graph the shapes in which it reads them."""
    for tensor in graph.parameters:
        variable = tensor.variable
        if variable is not None and (variable.cut is not None or tensor.shape != variable.shape):
            rearrange(variable, None if tensor.shape == variable.shape else columns)
