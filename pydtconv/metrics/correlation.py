"""Correlations of targets and predictions, and the share of the variance that is explained."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.dtypes import real_array
from pydtconv.metrics.functions import match_ranks
from pydtconv.metrics.metric import Metric, as_array
from pydtconv.metrics.reduction import MeanMetricWrapper

__all__ = ["ConcordanceCorrelation", "PearsonCorrelation", "R2Score", "concordance_correlation", "pearson_correlation"]


def _pair(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray]:
    y_pred = real_array("y_pred", y_pred)
    return match_ranks(real_array("y_true", y_true).astype(y_pred.dtype), y_pred)


def pearson_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """The covariance over the product of the standard deviations, along an axis."""
    parts = [y - y.mean(axis, keepdims=True) for y in _pair(y_true, y_pred)]
    return np.mean(np.multiply(*(y / y.std(axis, keepdims=True) for y in parts)), axis)


def concordance_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """Twice the covariance over both variances and the square of the distance of the means, along an axis."""
    y_true, y_pred = _pair(y_true, y_pred)
    means = [y.mean(axis, keepdims=True) for y in (y_true, y_pred)]
    shared = (y_true - means[1]) * (y_pred - means[1])
    total = y_true.var(axis, keepdims=True) + y_pred.var(axis, keepdims=True) + (means[0] - means[1]) ** 2
    return np.mean(2 * shared / (total + config.epsilon()), axis)


class PearsonCorrelation(MeanMetricWrapper):
    """The mean of `pearson_correlation`."""

    def __init__(self, name: str | None = "pearson_correlation", dtype: str | None = None, axis: int = -1) -> None:
        super().__init__(pearson_correlation, name, dtype, axis=axis)


class ConcordanceCorrelation(MeanMetricWrapper):
    """The mean of `concordance_correlation`."""

    def __init__(self, name: str | None = "concordance_correlation", dtype: str | None = None, axis: int = -1) -> None:
        super().__init__(concordance_correlation, name, dtype, axis=axis)


class R2Score(Metric):
    """1 - the sum of squared errors over the variance of the targets (n, outputs).

    class_aggregation: "uniform_average" or "variance_weighted_average" of the outputs, or None for all of them.
    num_regressors: where not 0, the score is adjusted for so many, by the number of samples of a weight that is not 0.
    """

    state_names = ("sums", "samples")

    def __init__(
        self,
        class_aggregation: str | None = "uniform_average",
        num_regressors: int = 0,
        name: str | None = "r2_score",
        dtype: str | None = None,
    ) -> None:
        super().__init__(dtype, name)
        if class_aggregation not in (None, "uniform_average", "variance_weighted_average"):
            raise ValueError(
                "R2Score: class_aggregation: expected None, 'uniform_average' or 'variance_weighted_average', got "
                f"{class_aggregation!r}"
            )
        if num_regressors < 0:
            raise ValueError(f"R2Score: num_regressors: expected 0 or more, got {num_regressors}")
        self.class_aggregation = class_aggregation
        self.num_regressors = num_regressors
        self.sums: Any = None
        self.samples = 0

    def reset_state(self) -> None:
        super().reset_state()
        self.sums, self.samples = None, 0

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        y_true, y_pred = match_ranks(as_array(self, "y_true", y_true), as_array(self, "y_pred", y_pred))
        if y_true.ndim != 2 or y_true.shape != y_pred.shape:
            raise ValueError(
                f"metric {self.name!r}: expected y_true and y_pred of (n, outputs), got {y_true.shape}, {y_pred.shape}"
            )
        y_true, y_pred = y_true.astype(np.float64), y_pred.astype(np.float64)
        weights = np.ones(()) if sample_weight is None else as_array(self, "sample_weight", sample_weight)
        weights = np.broadcast_to(weights[:, None] if weights.ndim == 1 else weights, y_true.shape)
        parts = (y_true * weights, y_true**2 * weights, (y_true - y_pred) ** 2 * weights, weights)
        new = np.stack([part.sum(0) for part in parts])
        self.sums = new if self.sums is None else self.sums + new
        self.samples += int(np.any(weights != 0, axis=1).sum())

    def result(self) -> Any:
        if self.sums is None:
            return 0.0
        total, squares, errors, count = self.sums
        variance = squares - total * total / count
        with np.errstate(all="ignore"):
            scores = 1 - errors / variance
        scores = np.where(np.isinf(scores), 0.0, scores)
        if self.class_aggregation is None:
            score: Any = scores
        elif self.class_aggregation == "uniform_average":
            score = float(scores.mean())
        else:
            score = float((variance * scores).sum() / variance.sum())
        if self.num_regressors:
            free = self.samples - self.num_regressors - 1
            if free > 0:
                return 1 - (1 - score) * (self.samples - 1) / free
            warnings.warn("R2Score: more regressors than samples: the score is not adjusted", stacklevel=2)
        return score

    def get_config(self) -> dict[str, Any]:
        own = {"class_aggregation": self.class_aggregation, "num_regressors": self.num_regressors}
        return {"name": self.name, "dtype": self._pydt_dtype, **own}
