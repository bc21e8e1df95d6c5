"""Steps that begin work which goes on while later steps run, and the steps that wait for it.

Who does the work (a thread, MPI, a disk, a device) is the business of the step that begins it.  The memory of both is
busy from the start to the wait: no other step may write what the work reads, or touch what it writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydtconv.graph.memory.storage import View
from pydtconv.graph.schedule.steps import Binder, Step
from pydtconv.kernels.base import Call


@dataclass(eq=False)
class StartStep(Step):
    """Begins work.  Subclasses say what it reads and writes, and bind it."""

    kind = "start"

    def bind_both(self, binder: Binder) -> tuple[Call, Call]:
        """What begins the work and returns at once, and what waits until it is done.

        The second raises what went wrong in the work.  It returns at once where nothing has begun: an executor calls it
        also after a step has raised.
        """
        raise NotImplementedError

    def bind(self, binder: Binder) -> Call:
        start, binder.waits[self] = self.bind_both(binder)
        return start


@dataclass(eq=False)
class WaitStep(Step):
    """Waits for the work that `start` has begun.

    ends_lives: of what the work reads, views whose contents are then elsewhere, so that their memory is free.
    """

    kind = "wait"

    start: StartStep
    ends_lives: Sequence[View] = ()

    def reads(self) -> list[View]:
        return self.start.reads()

    def writes(self) -> list[View]:
        return self.start.writes()

    def releases(self) -> Sequence[View]:
        return self.ends_lives

    def bind(self, binder: Binder) -> Call:
        return binder.waits[self.start]


def check_asynchronous(steps: Sequence[Step]) -> None:
    """Raises ValueError where work is not waited for, or a step in between disturbs it."""
    under_way: list[StartStep] = []
    for step in steps:
        if isinstance(step, WaitStep):
            if step.start not in under_way:
                raise ValueError(f"{_named(step)}: expected its start before it, got a wait for what has not begun")
            under_way.remove(step.start)
            continue
        for start in under_way:
            if _meet(start.writes(), step.views()) or _meet(start.reads(), step.writes()):
                raise ValueError(f"{_named(step)}: expected a step that leaves the memory of {_named(start)} alone")
        if isinstance(step, StartStep):
            under_way.append(step)
    if under_way:
        raise ValueError(f"{_named(under_way[0])}: expected a wait for it, got none")


def _meet(mine: Iterable[View], others: Sequence[View]) -> bool:
    return any(view.overlaps(other) for view in mine for other in others)


def _named(step: Step) -> str:
    return f"step {step.kind!r} of node {step.node.name!r}"
