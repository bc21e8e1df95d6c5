"""A part of an optimizer's step whose arrays stay from step to step: one of a plan's steps."""

from __future__ import annotations

from typing import Any


class BoundPart:
    """`optimizer.apply_part(part, gradients)` as a call, for which the slices of its arrays are made once.

    Small layers have hundreds of such calls in a step, each of which takes a few microseconds then.
    """

    def __init__(self, optimizer: Any, part: slice, gradients: Any) -> None:
        self._optimizer, self._part, self._gradients = optimizer, part, gradients
        self._binding: object = None
        self._runs: list[tuple[Any, Any, dict[str, Any], bool]] = []

    def __call__(self) -> None:
        optimizer = self._optimizer
        if not optimizer.only_updates:
            optimizer.apply_part(self._part, self._gradients)
            return
        if self._binding is not optimizer.binding:
            self._runs = list(optimizer.runs_of_part(self._part, self._gradients))
            self._binding = optimizer.binding
        rate, decay = optimizer.rate_and_decay
        for w, dw, slots, decays in self._runs:
            optimizer.update(w, dw, slots, rate, decay if decays else 0.0)
