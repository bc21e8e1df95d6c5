"""The seam between training and several processes that train one model together.

Training hands the strategy that is active (`current()`) each step, each update and each result.  The one here is of a
process that trains alone.  `pydtconv.distribution` puts another one in its place, by `replica.set_current`; models,
layers and callbacks know of nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pydtconv import replica
from pydtconv.callbacks import Callback
from pydtconv.engine.sharing import Sharing
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.optimizers import Optimizer
from pydtconv.replica import Replica
from pydtconv.support import launcher
from pydtconv.trainers.data_adapters.arrays import ArrayData, Batch
from pydtconv.trainers.data_adapters.streams import StreamData
from pydtconv.trainers.step_functions import Results, StepFunction
from pydtconv.trainers.training import Training


class Strategy(Replica):
    """How a batch is run and summed up, and its gradients applied; in a process that trains alone: as they are."""

    def start(self, kind: str, data: ArrayData | StreamData) -> None:
        """Before the data of a run is looked at: processes that train together are to begin the same one."""

    def planning(self) -> AbstractContextManager[None]:
        """Put around what is planned before a run: what one process cannot plan, all that train together refuse."""
        return nullcontext()

    def prepare(self, training: Training, kind: str, data: ArrayData | StreamData, single: bool = False) -> None:
        """Before batches of this kind ("train", "test", "predict") are run; single: before one of a user's loop."""
        if kind == "train":
            launcher.check_apart()

    def begin(self, settings: Mapping[str, Any], callbacks: Sequence[Callback]) -> None:
        """Before the epochs of fit, with its settings and callbacks, which processes that train together compare."""

    def epoch_ended(self, training: Training) -> None:
        """After an epoch and its callbacks: processes that train together compare what these may have changed."""

    def left(self, method: str, error: BaseException) -> None:
        """Says that this process has left fit, evaluate or predict by an exception."""

    def running(
        self, training: Training, kind: str, batch: Batch, step: StepFunction | None = None
    ) -> AbstractContextManager[Sharing | None]:
        """Put around the run of a step on a batch.

        step: that of the model; None for one that its class writes itself, for which the block gets what its program
        asks of other processes.
        """
        return nullcontext()

    def apply(self, optimizer: Optimizer, store: ParameterStore) -> None:
        """The optimizer's step, with the gradients of the whole batch."""
        optimizer.apply_store(store)

    def note(self, training: Training, batch: Batch, results: Results) -> dict[str, Any]:
        """Lets a batch's results into losses and metrics; returns all results so far."""
        training.track_losses(results.loss, results.losses, batch.total)
        return training.update_metrics(batch, results)

    def gathered(self, predictions: Any, batch: Batch) -> Any:
        """The predictions for the whole batch."""
        return predictions


_alone = Strategy()


def current() -> Strategy:
    """The active replica, where it is one that trains with others; else that of a process that trains alone."""
    here = replica.current()
    return here if isinstance(here, Strategy) else _alone
