"""Takes back what a step with offload has changed, where a transfer that failed breaks it off."""

from __future__ import annotations

import numpy as np

from pydtconv.graph.plan import Plan
from pydtconv.graph.schedule.steps import UpdateStep


class Undo:
    """Of one plan.  Forward moves averages, which are kept here; once the optimizer has begun, nothing helps.

    steps: that are done of the run.
    """

    def __init__(self, plan: Plan) -> None:
        moved = {node.inputs[i].variable for node in plan.graph.nodes for i in node.op.updates}
        self._kept = [(variable, variable.own_array.copy()) for variable in moved if variable is not None]
        updates = (index for index, step in enumerate(plan.steps) if isinstance(step, UpdateStep))
        self._first_update = next(updates, len(plan.steps))
        self.steps = 0

    def begin(self) -> None:
        """Before a run."""
        self.steps = 0
        for variable, value in self._kept:
            np.copyto(value, variable.own_array)

    def done(self) -> bool:
        """After a run that was interrupted: whether all variables are now what they were before it."""
        if self.steps > self._first_update:
            return False
        for variable, value in self._kept:
            np.copyto(variable.own_array, value)
        return True
