"""What memory there is for a plan: what is free, and what the model has already."""

from __future__ import annotations

import warnings

from pydtconv.graph import Memory, Plan
from pydtconv.support.machine import memory_available

MIB = 1 << 20
#: bytes of plans that are not compared with what is free: that reads files of the system
_SMALL = 64 * MIB


def available(memory: Memory, weights: int) -> int | None:
    """Bytes that a plan may take in this memory, with those that the model has there; None where nobody knows.

    On a CPU that is what the system has free, within the limits of this process's control groups.  weights: bytes of
    the variables.
    """
    if not memory.device.is_host:
        return memory.room()
    free, store = memory_available(), memory.store
    state = 0 if store is None else (1 + len(store.slots)) * store.parameters.nbytes
    return None if free is None else free + int(memory.arena.nbytes) + max(state, weights)


def lacks(plan: Plan, memory: Memory) -> str:
    """In words, that a plan takes more than there is; "" where it does not."""
    room = available(memory, plan.parameter_bytes) if plan.peak_bytes >= _SMALL else None
    if room is None or plan.peak_bytes <= room:
        return ""
    told = (
        f"a step takes {plan.peak_bytes / MIB:.0f} MiB, more than the {room / MIB:.0f} MiB that this process can have"
    )
    return f'{told}; memory_limit="{room // MIB}MiB" (--memory-limit) looks for a plan within them'


def check(plan: Plan, memory: Memory) -> None:
    """Warns of a plan that takes more than there is."""
    told = lacks(plan, memory)
    if told:
        warnings.warn(told, UserWarning, stacklevel=2)
