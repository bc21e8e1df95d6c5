"""Watching one result from epoch to epoch: whether it got better."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from pydtconv import losses, metrics, replica
from pydtconv.callbacks.callback import Callback, Logs
from pydtconv.suggest import did_you_mean
from pydtconv.support.messages import tell

#: metrics that are better the larger they are, and the smaller
_LARGER = (
    metrics.Accuracy, metrics.BinaryAccuracy, metrics.CategoricalAccuracy, metrics.SparseCategoricalAccuracy,
    metrics.TopKCategoricalAccuracy, metrics.SparseTopKCategoricalAccuracy, metrics.AUC, metrics.Precision,
    metrics.Recall, metrics.PrecisionAtRecall, metrics.RecallAtPrecision, metrics.SensitivityAtSpecificity,
    metrics.SpecificityAtSensitivity, metrics.F1Score, metrics.FBetaScore, metrics.IoU, metrics.MeanIoU,
    metrics.R2Score, metrics.CosineSimilarity, metrics.PearsonCorrelation, metrics.ConcordanceCorrelation,
)  # fmt: skip
_LOSSES = {name for name in losses.__all__ if name in metrics.__all__ and name[0].isupper()} - {"CosineSimilarity"}
_SMALLER = (*(getattr(metrics, name) for name in _LOSSES), metrics.RootMeanSquaredError, metrics.LogCoshError)
#: parts of names of results that are no metrics of the model, or metrics whose class does not tell
_LARGER_NAMES = ("acc", "auc", "precision", "recall", "f1", "fbeta", "top_k", "iou", "r2", "cosine_similarity")
_SMALLER_NAMES = ("loss", "err", "mse", "mae", "entropy", "divergence", "hinge", "poisson", "log_cosh", "logcosh")


class Monitor(Callback):
    """A callback with a result to watch.  mode: "min", "max", or "auto": by the metric, else by the result's name."""

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        super().__init__()
        if mode not in ("auto", "min", "max"):
            warnings.warn(
                f"{type(self).__name__} mode {mode!r} is unknown: expected 'auto', 'min' or 'max'; 'auto' is used",
                UserWarning,
                stacklevel=3,
            )
            mode = "auto"
        self.monitor = monitor
        self.mode = mode
        self.min_delta = abs(min_delta)

    @property
    def larger(self) -> bool:
        """Whether larger is better.  Raises ValueError where neither a metric of the model nor the name tells."""
        if self.mode == "auto":
            self.mode = self._direction()
        return self.mode == "max"

    def _direction(self) -> str:
        name = self.monitor.removeprefix("val_")
        single = [one for metric in getattr(self.model, "metrics", ()) for one in getattr(metric, "metrics", [metric])]
        known = [metric for metric in single if f"_{name}".endswith(f"_{metric.name}")]
        for metric in sorted(known, key=lambda metric: -len(metric.name)):
            told = {"up": "max", "down": "min"}.get(
                str(getattr(metric, "_direction", None))
            )  # as metrics of Keras tell
            if told is not None:
                return told
            if isinstance(metric, _LARGER + _SMALLER):
                return "max" if isinstance(metric, _LARGER) else "min"
        if any(part in name for part in _LARGER_NAMES):
            return "max"
        if any(part in name for part in _SMALLER_NAMES):
            return "min"
        raise ValueError(
            f"{type(self).__name__}: mode: expected 'min' or 'max' for {self.monitor!r}, of which it is not known "
            "whether less is better, got 'auto'"
        )

    @property
    def worst(self) -> float:
        return -math.inf if self.larger else math.inf

    def better(self, value: float, reference: float | None) -> bool:
        """Whether value is better than reference by more than min_delta; None: there is none yet."""
        reference = self.worst if reference is None else reference
        return value - self.min_delta > reference if self.larger else value + self.min_delta < reference

    def value(self, logs: Logs | None) -> float | None:
        """The watched result; None, with a warning, where this epoch has none of this name.

        Raises ValueError for a result of several numbers.
        """
        logs = logs or {}
        if self.monitor in logs:
            found = np.asarray(logs[self.monitor])
            if found.size != 1:
                raise ValueError(
                    f"{type(self).__name__}: monitor: expected one number, got {found.tolist()} of {self.monitor!r}"
                )
            return float(found.item())
        warnings.warn(
            f"{type(self).__name__}: the result {self.monitor!r} is not there; there are {', '.join(logs) or 'none'}"
            f"{did_you_mean(self.monitor, logs)}",
            UserWarning,
            stacklevel=4,
        )
        return None


def say(verbose: Any, text: str) -> None:
    if verbose and replica.current().is_main:
        tell(text)
