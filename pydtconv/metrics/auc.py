"""The area under a curve of true positives: ROC, or precision against recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.metrics.confusion import Confusion, claim_thresholds, divide

__all__ = ["AUC"]


class AUC(Confusion):
    """The area under the ROC curve, or under precision against recall ("PR"), by sums over thresholds.

    "PRGAIN": under precision gain against recall gain (Flach and Kull, NeurIPS 2015): 1 - P/N of false positives, or
    false negatives, over true positives.

    summation_method: "interpolation" (the mean of neighbours; for "PR" the closed form of Davis and Goadrich, ICML
    2006, section 4), "minoring" or "majoring" (the smaller or larger neighbour).
    Scores are cut to 0..1, unless `thresholds` are given that are not evenly spaced.
    multi_label: the mean of the areas of all labels, which are the last axis, with label_weights.
    """

    def __init__(
        self,
        num_thresholds: int | None = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = None,
        dtype: str | None = None,
        thresholds: Sequence[float] | None = None,
        multi_label: bool = False,
        num_labels: int | None = None,
        label_weights: Sequence[float] | None = None,
        from_logits: bool = False,
    ) -> None:
        if str(curve).upper() not in ("ROC", "PR", "PRGAIN"):
            raise ValueError(f"AUC: expected curve 'ROC', 'PR' or 'PRGAIN', got {curve!r}")
        if str(summation_method).lower() not in ("interpolation", "minoring", "majoring"):
            raise ValueError(
                f"AUC: expected summation_method 'interpolation', 'minoring' or 'majoring', got {summation_method!r}"
            )
        if thresholds is None and (num_thresholds or 0) <= 1:
            raise ValueError(f"AUC: expected num_thresholds of 2 or more, got {num_thresholds!r}")
        if num_labels and not multi_label:
            raise ValueError("AUC: num_labels is only used with multi_label=True")
        count = len(thresholds) + 2 if thresholds is not None else num_thresholds or 0
        claim_thresholds(self, count)
        self._given = thresholds
        inner = sorted(thresholds) if thresholds is not None else np.linspace(0, 1, count)[1:-1]
        self.thresholds = [-config.epsilon(), *map(float, inner), 1 + config.epsilon()]
        self.num_thresholds = len(self.thresholds)
        self._even = np.allclose(self.thresholds, np.linspace(0, 1, self.num_thresholds), atol=2 * config.epsilon())
        self.curve = str(curve).upper()
        self.summation_method = str(summation_method).lower()
        self.multi_label = multi_label
        self.num_labels = num_labels
        self.label_weights = None if label_weights is None else np.asarray(label_weights, np.float64)
        self.from_logits = from_logits
        super().__init__(self.thresholds, name, dtype)
        if num_labels:
            self._begin((self.num_thresholds, num_labels))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        labels, scores, weights = self._arrays(y_true, y_pred, sample_weight)
        if self.from_logits:
            scores = 0.5 * (1 + np.tanh(0.5 * scores))
        elif self._even:
            scores = np.clip(scores, 0, 1)
        if not self.multi_label:
            if self.label_weights is not None:
                weights = weights * self.label_weights
            self._count(labels, scores, weights)
            return
        known = self.true_positives.shape[1:]
        if scores.ndim != 2 or known not in ((), scores.shape[1:]):
            expected = f"(n, {known[0] if known else 'labels'})"
            raise ValueError(f"metric {self.name!r}: expected y_pred of shape {expected}, got {scores.shape}")
        if not known:
            self._begin((self.num_thresholds, scores.shape[1]))
        for i in range(scores.shape[1]):
            self._count(labels[:, i], scores[:, i], weights[:, i], (slice(None), i))

    def result(self) -> float:
        if not self.multi_label:
            return self._area(...)
        if self.true_positives.ndim == 1:
            return 0.0
        areas = np.array([self._area((slice(None), i)) for i in range(self.true_positives.shape[1])])
        weights = np.ones(len(areas)) if self.label_weights is None else self.label_weights
        return float(divide((areas * weights).sum(), weights.sum()))

    def _area(self, place: Any) -> float:
        """The area of the counts that lie at a place of those that are kept."""
        found, wrong, right, missed = (getattr(self, name)[place] for name in self.state_names)
        recall = divide(found, found + missed)
        if self.curve == "PR" and self.summation_method == "interpolation":
            return _interpolated(found, wrong, missed)
        x, y = recall, divide(found, found + wrong)
        if self.curve == "ROC":
            x, y = divide(wrong, wrong + right), recall
        if self.curve == "PRGAIN":
            scale = divide(found + missed, wrong + right)
            x = np.where(found > 0, np.maximum(1 - scale * divide(missed, found), 0), 0.0)
            y = np.where(found > 0, 1 - scale * divide(wrong, found), 1.0)
        heights = {
            "interpolation": (y[:-1] + y[1:]) / 2,
            "minoring": np.minimum(y[:-1], y[1:]),
            "majoring": np.maximum(y[:-1], y[1:]),
        }[self.summation_method]
        return float(((x[:-1] - x[1:]) * heights).sum())

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dtype": self._pydt_dtype,
            "num_thresholds": self.num_thresholds,
            "curve": self.curve,
            "summation_method": self.summation_method,
            "thresholds": None if self._given is None else list(self._given),
            "multi_label": self.multi_label,
            "num_labels": self.num_labels,
            "label_weights": None if self.label_weights is None else self.label_weights.tolist(),
            "from_logits": self.from_logits,
        }


def _interpolated(found: np.ndarray, wrong: np.ndarray, missed: np.ndarray) -> float:
    """The area under precision against recall where found and wrong grow linearly between thresholds.

    With p = found + wrong and slope = d found / d p, precision is (a + slope * p) / p, of which the integral over
    recall is slope * (d found + a * log(p_1 / p_0)) / (found + missed).
    """
    p = found + wrong
    gain = found[:-1] - found[1:]
    slope = divide(gain, np.maximum(p[:-1] - p[1:], 0))
    intercept = found[1:] - slope * p[1:]
    ratio = np.where((p[:-1] > 0) & (p[1:] > 0), divide(p[:-1], p[1:]), 1.0)
    return float(divide(slope * (gain + intercept * np.log(ratio)), found[1:] + missed[1:]).sum())
