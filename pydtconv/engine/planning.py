"""The plan of a graph within limits, and within what its device has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv import replica
from pydtconv.engine import first_use, offloading, room
from pydtconv.engine.limits import Limits
from pydtconv.graph import Memory, MemoryLimitError, Plan, Updates
from pydtconv.graph.ir.graph import Graph
from pydtconv.graph.ir.variable import Variable

_BY_ROWS, _WHOLE = Updates(by_rows=True), Updates(by_rows=False)


def planned(graph: Graph, memory: Memory, within: Limits, before: Plan | None = None, **options: Any) -> Plan:
    """The plan of a graph that will run in this memory.  Raises MemoryError where its device has not enough.

    Warns where a CPU has not enough.  Only what is differentiated is offloaded.  before: see `offloading.planned`.
    options: of `build_plan`.
    """
    folder = None if graph.loss is None or within.memory is None else within.offload
    options["tune"] = first_use.hook(memory.device)
    has = memory.room()
    if has is None or (within.memory is not None and within.memory <= has):
        plan = offloading.planned(graph, folder, before, memory_limit=within.memory, **options)
        if has is None:
            room.check(plan, memory)
        return plan
    try:
        return offloading.planned(graph, folder, before, memory_limit=has, **options)
    except MemoryLimitError as error:
        raise MemoryError(
            f"device {memory.device.name}: expected at least {error.smallest_bytes} bytes, the smallest plan of this "
            f"model and batch size, got {has} that it can have"
        ) from None


def updates_of(optimizer: Any, memory: Memory) -> Updates | None:
    """What an optimizer can do while backward runs; None where gradients are to lie in the store afterwards."""
    if optimizer is None or memory.keeps_gradients or replica.current().reads_gradients:
        return None
    if not optimizer.works_in_parts:
        return None
    if not optimizer.works_in_rows:
        return _WHOLE
    return Updates(by_rows=True, sharers=replica.current().sharers)


def updating(optimizer: Any, variables: Sequence[Variable], memory: Memory) -> dict[str, Any]:
    """What `build_plan` is told of the optimizer that takes the gradients by these variables; None: of none."""
    updates = updates_of(optimizer, memory)
    if updates is not None and updates.sharers > 1 and any(variable.constraint for variable in variables):
        updates = _BY_ROWS  # each process would constrain what all have
    here, slots = replica.current(), () if optimizer is None else optimizer.all_slots()
    whole, part = here.shard == "optimizer" and "gradient_accumulator" in slots, 1 / (here.size if here.shard else 1)
    if part < 1 and optimizer is not None and optimizer.goes_by_variable:  # one process has the largest one
        sizes = [variable.host_array.nbytes for variable in variables]
        part = max(part, max(sizes, default=0) / max(sum(sizes), 1))
    return {
        "slots": whole + (len(slots) - whole) * part,
        "gradient_parts": here.size if here.shard == "gradients" else 1,
        "state_bytes": 0 if optimizer is None else int(optimizer.state_bytes(variables) * part),
        "updates": updates,
    }
