"""Where fit stands: what a checkpoint keeps of the loops, and where a restored run goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydtconv.trainers.epochs import Epochs
from pydtconv.trainers.metric_runs import Gathering


class Position:
    """epoch: the running one, or the next one between two; finished: no epoch is to come, however many were wanted.
    callbacks: all that fit calls.  gathering: fit's part in the metrics.

    logs: of the last training step of the running epoch; none before the first one.
    results: of the training steps of the running epoch once all are done, while its validation runs; else None.
    """

    def __init__(
        self,
        epoch: int,
        batches: Epochs,
        validation: Epochs | None,
        callbacks: list[Any],
        gathering: Gathering,
    ) -> None:
        self.epoch = epoch
        self.callbacks = callbacks
        self.finished = False
        self.logs: dict[str, Any] = {}
        self.results: dict[str, Any] | None = None
        self.batches = batches
        self.validation = validation
        self.gathering = gathering
        self._before_validation: dict[str, Any] | None = None

    def __str__(self) -> str:
        part = "its validation" if self.results is not None else f"step {self.steps + 1}"
        return f"epoch {self.epoch + 1}, {part}"

    @property
    def steps(self) -> int:
        """Training steps done in the running epoch; 0 between epochs and in validation."""
        return self.batches.done

    def trained(self, results: dict[str, Any]) -> None:
        """The training steps of the running epoch are done, with these results."""
        self.results, self.logs = results, {}
        self.batches.done = 0
        self._before_validation = None if self.validation is None else self.validation.get_state()

    def next_epoch(self) -> None:
        """The running epoch is done."""
        self.epoch += 1
        self.results = None
        if self.validation is not None:
            self.validation.done = 0

    def get_state(self, finished: bool) -> dict[str, Any]:
        """Plain data and arrays.  Within validation, of which nothing is kept, the state before it."""
        within = self.results is not None
        validation = None if self.validation is None else self.validation.get_state()
        return {
            "epoch": self.epoch,
            "finished": finished,
            "logs": self.logs,
            "results": self.results,
            "batches": self.batches.get_state(),
            "validation": self._before_validation if within else validation,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `get_state` gave.

        Raises ValueError, before anything is changed, where the epoch going on was of other batches.
        """
        epoch, finished, results, logs = state["epoch"], state["finished"], state["results"], state.get("logs", {})
        by_name = (results is None or isinstance(results, dict)) and isinstance(logs, dict)
        if type(epoch) is not int or epoch < 0 or not by_name:
            raise ValueError(
                f"position: expected the number of an epoch and results by name, got {epoch!r}, {results!r}, {logs!r}"
            )
        self.batches.set_state(state["batches"])
        if self.validation is not None and state["validation"] is not None:
            self.validation.set_state(state["validation"])
        self.epoch, self.finished, self.results, self.logs = epoch, bool(finished), results, dict(logs)
