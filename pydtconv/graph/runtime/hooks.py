"""What may be watched from outside while a plan runs."""

from __future__ import annotations

from typing import Protocol

from pydtconv.graph.schedule.steps import Step


class Hooks(Protocol):
    """What may be watched from outside while a plan runs."""

    def before(self, index: int, step: Step) -> None: ...

    def after(self, index: int, step: Step) -> None: ...

    def gradient_ready(self, part: slice) -> None:
        """The gradients of this slice of the store's flat array are complete.

        They lie in `store.gradients`, or where the plan applies them itself are transient and just applied.
        """
