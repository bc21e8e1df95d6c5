"""`Training`: a model as those see it who train it together, watch it or compare it; see strategy.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.graph import Memory, Plan, Variable
from pydtconv.metrics import Metric
from pydtconv.metrics.metric import to_keep
from pydtconv.optimizers import Optimizer
from pydtconv.trainers.data_adapters.arrays import Batch
from pydtconv.trainers.step_functions import Results
from pydtconv.trainers.targets import Output


class Training:
    """What is trained, by what, in which memory, and what comes out.  A model has one, which stays the same."""

    def __init__(self, model: Any) -> None:
        self._model = model
        #: whether others may read, after this step of training and before the next, what the optimizer accumulates
        self.is_read = True

    @property
    def memory(self) -> Memory:
        """The parameter store, the random state and the hooks that all steps of the model share."""
        return self._model._pydt_steps.memory

    @property
    def plan(self) -> Plan:
        """That of the step which has run last.  Raises IndexError before the first one."""
        return self._model._pydt_steps.plans[-1]

    @property
    def variables(self) -> Sequence[Variable]:
        """All variables of the model, trained or not."""
        return self._model.variables

    @property
    def layers(self) -> Sequence[Any]:
        """The layers directly inside."""
        return getattr(self._model, "layers", ())

    @property
    def optimizer(self) -> Optimizer | None:
        return self._model.optimizer

    @property
    def split(self) -> Any:
        """The patches that it is trained in, None for whole images."""
        return self._model.split

    @property
    def outputs(self) -> Sequence[Output]:
        """The outputs with their losses and weights; none before the first batch."""
        targets = self._model._pydt_targets
        return () if targets is None else targets.outputs

    @property
    def metrics(self) -> list[Metric]:
        """All but the mean of the loss, which follows from `track_losses`."""
        return [metric for metric in self._model._pydt_kept_metrics if metric is not self._model._pydt_loss_tracker]

    @property
    def metric_outputs(self) -> list[int]:
        """For each of `metrics`, the number of the output that it is of; 0 for those of no single one."""
        compiled = self._model._pydt_compiled_metrics
        return [0 if compiled is None else compiled.output_of(metric) for metric in self.metrics]

    def targets(self, batch: Batch) -> Sequence[np.ndarray | None]:
        """The targets of a batch, for each of `outputs`."""
        return self._model._pydt_targets.arrange(batch.y, "y")

    def sample_weights(self, batch: Batch) -> Sequence[np.ndarray | None]:
        """The weights of a batch's samples, for each of `outputs`."""
        return self._model._pydt_targets.weights(batch.sample_weight)

    def track_losses(self, loss: float | None, losses: dict[str, float], samples: int) -> None:
        """Lets the losses of a batch of so many samples into their means."""
        self._model._pydt_track_losses(loss, losses, samples)

    def update_metrics(self, batch: Batch, results: Results) -> dict[str, Any]:
        """Lets a batch into the metrics; returns all results so far."""
        for update in results.updates:
            update.run(batch.size / batch.total)
        given = batch.x, batch.y, results.predictions, batch.sample_weight
        return self._model.compute_metrics(*(to_keep(given) if self.overrides_metrics else given))

    @property
    def overrides_metrics(self) -> bool:
        """Whether the model's class has a `compute_metrics` of its own, which may give more than metrics."""
        return bool(self._model._pydt_overrides("compute_metrics"))

    def results(self) -> dict[str, Any]:
        """All results so far, by name."""
        return self._model.get_metrics_result()
