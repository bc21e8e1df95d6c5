"""Losses, metrics and predictions of all processes, from those of each."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.distribution.data_parallel.member import Member
from pydtconv.distribution.data_parallel.metric_totals import MetricTotals
from pydtconv.support.uninterrupted import ENDING
from pydtconv.trainers.data_adapters.arrays import Batch
from pydtconv.trainers.step_functions import Results
from pydtconv.trainers.training import Training


class JointResults(Member):
    """A process that lets what it has computed of its samples into the results of all."""

    _told_of_loss = False

    def note(self, training: Training, batch: Batch, results: Results) -> dict[str, Any]:
        totals = MetricTotals(training.metrics)
        logs = self._update_own(training, batch, results)
        losses = np.array([results.loss, *results.losses.values()], np.float64)
        own = np.concatenate([losses, totals.gained(self._counting(training)), np.zeros(len(ENDING))])
        if not batch.size:
            own[:] = 0
        own[-len(ENDING) :] = self._signals()
        whole, signals = np.split(self.small.allreduce(own, "the sums of loss and metrics"), [-len(ENDING)])
        self._note_signals(signals)
        gained = whole[losses.size :]
        totals.set(gained)
        if not np.isfinite(whole[0]):
            self._tell_of_loss(float(whole[0]), own[0])
        by_name = dict(zip(results.losses, whole[1 : losses.size].tolist(), strict=True))
        training.track_losses(float(whole[0]), by_name, batch.total)
        if training.overrides_metrics:  # once more, with what the others have gained: it may give more than metrics
            totals.set(gained - totals.gained_here)
            logs = self._update_own(training, batch, results)
            totals.set(gained)
            logs = self.small.bcast_object(logs, "the results of compute_metrics")
        return logs | training.results()

    def _update_own(self, training: Training, batch: Batch, results: Results) -> dict[str, Any]:
        self.portion = batch.size / batch.total
        try:
            return self._update_metrics(training, batch, results)
        finally:
            self.portion = 1.0

    def _update_metrics(self, training: Training, batch: Batch, results: Results) -> dict[str, Any]:
        """Lets what this process has predicted into its metrics; returns all results so far."""
        return training.update_metrics(batch, results)

    def _counting(self, training: Training) -> list[float] | None:
        """For each metric what part of its gain in this process counts; None: all of each."""
        return None

    def _tell_of_loss(self, whole: float, own: float) -> None:
        """Warns once, on rank 0, of the ranks whose part of the loss is not finite."""
        losses = self.small.allgather(np.array([own]), "the loss of each rank")[:, 0]
        bad = " and ".join(f"rank {rank}" for rank in np.flatnonzero(~np.isfinite(losses)))
        if self.is_main and not self._told_of_loss:
            told = f"the loss is {whole}; it is not finite on {bad or 'none, but their sum is not'}"
            advice = "check_gradients=True (--check-gradients) names the parameter"
            warnings.warn(f"{told}; {advice}", UserWarning, stacklevel=2)
        self._told_of_loss = True

    def gathered(self, predictions: Any, batch: Batch) -> Any:
        return tree.map_structure(
            lambda leaf: self.small.allgatherv(_own_rows(leaf, batch), "the predictions of a batch"), predictions
        )


def _own_rows(leaf: np.ndarray, batch: Batch) -> np.ndarray:
    """The rows of a prediction that are of this process's samples, each of which has as many."""
    samples = max(batch.size, 1)
    each, more = divmod(len(leaf) if leaf.ndim else 0, samples)
    if more or not each:
        raise not_by_sample(leaf, samples)
    return leaf[: each * batch.size]


def not_by_sample(leaf: np.ndarray, samples: int) -> ValueError:
    """The error of a prediction without rows for each sample, of so many."""
    return ValueError(
        f"predict: expected outputs with rows for each sample, which several processes share, got shape {leaf.shape} "
        f"for {samples} sample(s)"
    )
