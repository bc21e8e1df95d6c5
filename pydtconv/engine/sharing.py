"""What a program asks of those who run it on other shares of the same batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from pydtconv.graph.memory.parameter_store import ParameterStore


class Sharing(Protocol):
    """One run of a program by several processes, each with its share of a batch.

    Gradients by variables become those of the whole batch as soon as they are there, so whatever the code does with
    them is the same everywhere.  Those that only a step of an optimizer reads become so before that step.
    """

    def check(self, told: str) -> None:
        """Before the run; told: what the program will ask for.  Raises RuntimeError where others do something else."""

    #: this process's part of the samples, by which what it differentiates is multiplied
    portion: float

    def total(self, arrays: Sequence[np.ndarray], what: str) -> list[np.ndarray]:
        """The sums of these arrays over all processes."""

    def mean(self, arrays: Sequence[np.ndarray], what: str) -> list[np.ndarray]:
        """The means of these arrays over all processes, each of which counts by its samples."""

    def before_update(self, optimizer: Any, store: ParameterStore, own: bool) -> None:
        """Before a step of an optimizer by the gradients in a store; own: whether they are those of this process."""

    def ran(self, executor: Any) -> None:
        """After a graph has run: what the samples of this process alone have changed becomes that of all."""

    def assigned(self, variable: Any, value: np.ndarray) -> np.ndarray:
        """What a variable is assigned in all processes.  Raises ValueError where they differ and nobody said how."""

    def update(self, update: Any, args: Any, kwargs: Any) -> None:
        """Lets this process's values into a metric."""

    def settle(self) -> None:
        """Makes the metrics those of the whole batch."""
