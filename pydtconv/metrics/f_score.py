"""F-beta scores: (1 + beta^2) * precision * recall / (beta^2 * precision + recall), for each class."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.metrics.metric import Metric, as_array

__all__ = ["F1Score", "FBetaScore"]


class FBetaScore(Metric):
    """The F-beta score of each class (average=None), its mean ("macro"), weighted by class ("weighted"), or of all
    classes together ("micro").

    y_true, y_pred: (n, classes).  threshold: a float above 0 and up to 1, above which a prediction is
    positive; None takes the largest of a sample.
    """

    state_names = ("_counts",)

    def __init__(
        self,
        average: str | None = None,
        beta: float = 1.0,
        threshold: float | None = None,
        name: str | None = "fbeta_score",
        dtype: str | None = None,
    ) -> None:
        if average not in (None, "micro", "macro", "weighted"):
            raise ValueError(f"FBetaScore: expected average None, 'micro', 'macro' or 'weighted', got {average!r}")
        if not isinstance(beta, float) or not beta > 0:
            raise ValueError(f"FBetaScore: expected beta to be a positive float, got {beta!r}")
        if threshold is not None and (not isinstance(threshold, float) or not 0 < threshold <= 1):
            raise ValueError(
                f"{type(self).__name__}: threshold: expected None or a float above 0 and up to 1, got {threshold!r}"
            )
        super().__init__(dtype, name)
        self.average = average
        self.beta = beta
        self.threshold = threshold
        self.reset_state()

    def reset_state(self) -> None:
        super().reset_state()
        self._counts: np.ndarray | None = None

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        labels = as_array(self, "y_true", y_true).astype(np.float64)
        scores = as_array(self, "y_pred", y_pred)
        if labels.ndim != 2 or labels.shape != scores.shape:
            raise ValueError(
                f"metric {self.name!r}: expected y_true and y_pred of shape (n, classes), "
                f"got {labels.shape} and {scores.shape}"
            )
        if self.threshold is None:
            positive = (scores >= scores.max(-1, keepdims=True)) & (np.abs(scores) > 1e-9)
        else:
            positive = scores > self.threshold
        weights = np.ones(1) if sample_weight is None else as_array(self, "sample_weight", sample_weight)
        weights = weights.reshape(-1, 1) if weights.ndim < 2 else weights
        parts = (positive * labels, positive * (1 - labels), (1 - positive) * labels, labels)
        sums = np.stack([(part * weights).sum(0) for part in parts])
        if self.average == "micro":
            sums = sums.sum(1)
        self._counts = sums if self._counts is None else self._counts + sums

    def result(self) -> Any:
        if self._counts is None:
            return 0.0
        found, wrong, missed, present = self._counts
        small = config.epsilon()
        precision, recall = found / (found + wrong + small), found / (found + missed + small)
        scores = precision * recall / (self.beta**2 * precision + recall + small) * (1 + self.beta**2)
        if self.average == "weighted":
            return float((scores * present / (present.sum() + small)).sum())
        return scores if self.average is None else float(scores.mean())

    def get_config(self) -> dict[str, Any]:
        own = {"average": self.average, "beta": self.beta, "threshold": self.threshold}
        return super().get_config() | own


class F1Score(FBetaScore):
    """The harmonic mean of precision and recall."""

    def __init__(
        self,
        average: str | None = None,
        threshold: float | None = None,
        name: str | None = "f1_score",
        dtype: str | None = None,
    ) -> None:
        super().__init__(average, 1.0, threshold, name, dtype)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["beta"]
        return config
