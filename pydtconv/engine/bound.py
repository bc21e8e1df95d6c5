"""`Bound`: a plan in memory, with the variables as they were when it was bound."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from pydtconv import replica
from pydtconv.graph import Executor, Memory, Plan
from pydtconv.graph.ir import tracing
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.columns import arrange
from pydtconv.graph.runtime.kept import variables_of

#: what brings a variable's value back, where a device has it
_MIRROR = operator.attrgetter("mirror")


class Bound:
    """An executor, and the variables that its graph reads.  It is run on whole arrays, where images are cut, too.

    Others may move these between two runs: another model that trains some of them has flat arrays of its own.  Those
    that are trained here are taken back then, and the plan is bound to where all of them lie.
    """

    def __init__(self, executor: Executor, memory: Memory) -> None:
        self.executor = executor
        self.memory = memory
        self._variables = variables_of(executor.plan.graph)
        self._trains = bool(executor.plan.gradient_order)
        self._arrays = self._where()
        self._moved = Variable.moved

    def run(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The results by name: views that are valid until the memory is used again."""
        self.check()
        placements = self.executor.plan.graph.placements
        if placements:
            inputs = {name: _part(value, placements.get(name)) for name, value in inputs.items()}
        return self.executor.run(inputs)

    def check(self) -> None:
        """Takes the variables back, and binds the plan anew, where others have moved them."""
        tracing.settle_outside()
        if self._moved == Variable.moved:
            return
        if self.memory.device.is_host:
            for variable in filter(_MIRROR, self._variables):
                _ = variable.array  # which a device has
        arrange(self.executor.plan.graph, replica.current().columns)
        now = self._where()
        if not all(map(operator.is_, now, self._arrays)):
            if self._trains and self.memory.store is not None:
                make_store(self.executor.plan, self.memory)
                now = self._where()
            self.executor.unbind()
            self._arrays = now
        self._moved = Variable.moved

    def _where(self) -> list[np.ndarray]:
        return [variable.host_array for variable in self._variables]


def make_store(plan: Plan, memory: Memory) -> None:
    """Moves what a plan trains into one store.  The step of a plan that trains others may have left another store."""
    if memory.store is not None and not memory.has_store_of(plan.gradient_order):
        replica.current().settle()  # values and state of which each process may have a part
    memory.make_store(plan.gradient_order)


def _part(value: Any, placed: Any) -> Any:
    """What a plan reads of an input: this process's part, where images are cut."""
    return value if placed is None or np.shape(value) != placed.shape else value[placed.slices]
