"""What variables held when the stages of a recording read them: gradients are by these values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pydtconv.graph.ir.graph import Node, Tensor
from pydtconv.graph.ir.variable import Variable


class _Former(NamedTuple):
    """A value that a variable had.  stage: the one whose actions have changed it; version: the variable's before."""

    stage: int
    version: int
    tensor: Tensor


class FormerValues:
    """The versions of variables as stages read them, and the former values that are kept."""

    def __init__(self) -> None:
        self._versions: dict[tuple[int, int], int] = {}
        self._former: dict[int, list[_Former]] = {}

    def note(self, stage: int, nodes: Sequence[Node]) -> None:
        """Notes the versions that the nodes of a stage read, to see whether variables are changed elsewhere."""
        for variable in (x.variable for node in nodes for x in node.inputs):
            if variable is not None:
                self._versions.setdefault((stage, id(variable)), variable.version)

    def keep(self, stage: int, changed: Iterable[Variable], kept: Callable[[Variable], Tensor]) -> None:
        """Keeps the values of variables that a stage is about to change, if any has read them.

        kept: makes the tensor that has the value of a variable from now on.
        """
        read = {identity for _, identity in self._versions}
        for variable in {id(each): each for each in changed if id(each) in read}.values():
            former = _Former(stage, variable.version, kept(variable))
            self._former.setdefault(id(variable), []).append(former)

    def _former_of(self, variable: Variable, stage: int) -> _Former | None:
        """What a variable had before it was changed for the first time after this stage had read it."""
        return next((former for former in self._former.get(id(variable), ()) if former.stage >= stage), None)

    def as_read(self, tensor: Tensor, stage: int) -> Tensor:
        """The tensor that has what a stage read: of a variable that was changed since, its value then."""
        found = self._former_of(tensor.variable, stage) if self._former and tensor.variable is not None else None
        return tensor if found is None else found.tensor

    def value_read(self, variable: Variable, stage: int, changed: bool) -> tuple[bool, object]:
        """Whether the value that a stage read is known, and what stands for it; changed: whether actions changed it."""
        former = self._former_of(variable, stage)
        then = variable.version if former is None else former.version
        known = then == self._versions.get((stage, id(variable)), then) and changed == (former is not None)
        return known, former

    def tensors(self) -> set[Tensor]:
        """Those of all former values."""
        return {former.tensor for each in self._former.values() for former in each}

    def clear(self) -> None:
        """Drops the former values, when nobody will take gradients by them."""
        self._former.clear()
