"""Counts of right and wrong positives and negatives, precision, recall, and the area under a curve of them.

A prediction counts as positive at a threshold when it is greater.  The counts of all thresholds come from one
histogram: a prediction falls into the bin of how many (sorted) thresholds it exceeds, and the positives at a threshold
are the sum of the bins above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.metrics.functions import match_ranks
from pydtconv.metrics.metric import Metric, as_array


def divide(x: Any, y: Any) -> np.ndarray:
    """x / y, 0 where y is 0."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    return np.divide(x, y, out=np.zeros(np.broadcast_shapes(x.shape, y.shape)), where=y != 0)


class _Confusion(Metric):
    """Counts for every threshold: true_positives, false_positives, true_negatives, false_negatives (thresholds)."""

    state_names = ("true_positives", "false_positives", "true_negatives", "false_negatives")

    def __init__(self, thresholds: Sequence[float], name: str | None, dtype: str | None) -> None:
        super().__init__(dtype, name)
        order = np.argsort(thresholds, kind="stable")
        self._limits = np.asarray(thresholds, np.float64)[order]
        self._order = np.argsort(order, kind="stable")
        self.reset_state()

    def reset_state(self) -> None:
        super().reset_state()
        self.true_positives = np.zeros(len(self._limits))
        self.false_positives = np.zeros(len(self._limits))
        self.true_negatives = np.zeros(len(self._limits))
        self.false_negatives = np.zeros(len(self._limits))

    def _count(self, y_true: np.ndarray, y_pred: np.ndarray, weights: np.ndarray) -> None:
        """Adds samples of one shape."""
        bins = np.searchsorted(self._limits, y_pred.ravel(), side="left")
        count, positive = len(self._limits) + 1, y_true.ravel().astype(bool)
        weights = weights.ravel()
        right = np.bincount(bins, weights * positive, count)
        wrong = np.bincount(bins, weights * ~positive, count)
        above = np.cumsum(right[::-1])[::-1][1:], np.cumsum(wrong[::-1])[::-1][1:]
        self.true_positives += above[0][self._order]
        self.false_positives += above[1][self._order]
        self.false_negatives += (right.sum() - above[0])[self._order]
        self.true_negatives += (wrong.sum() - above[1])[self._order]

    def _arrays(self, y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels, predictions and weights of one shape."""
        y_true, y_pred = match_ranks(as_array(self, "y_true", y_true), as_array(self, "y_pred", y_pred))
        if y_true.shape != y_pred.shape:
            raise ValueError(
                f"metric {self.name!r}: expected y_true and y_pred of one shape, got {y_true.shape} and {y_pred.shape}"
            )
        weights = np.ones(()) if sample_weight is None else as_array(self, "sample_weight", sample_weight)
        if 0 < weights.ndim < y_pred.ndim:
            weights = weights.reshape(weights.shape + (1,) * (y_pred.ndim - weights.ndim))
        return y_true, y_pred.astype(np.float64), np.broadcast_to(weights.astype(np.float64), y_pred.shape)


class _Thresholded(_Confusion):
    """With thresholds given as None (one default), a number, or a sequence (one result for each)."""

    def __init__(
        self, thresholds: Any, default: float, top_k: int | None, class_id: int | None, name: Any, dtype: Any
    ) -> None:
        self._given = thresholds
        limits = [default] if thresholds is None else list(np.atleast_1d(thresholds))
        if thresholds is not None and not all(limit is not None and 0 <= limit <= 1 for limit in limits):
            raise ValueError(f"{type(self).__name__}: expected thresholds between 0 and 1, got {thresholds!r}")
        super().__init__(limits, name, dtype)
        self.thresholds = limits
        self.top_k = top_k
        self.class_id = class_id

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        labels, scores, weights = self._arrays(y_true, y_pred, sample_weight)
        if self.top_k is not None:
            worst = np.argsort(-scores, axis=-1, kind="stable")[..., self.top_k :]
            np.put_along_axis(scores, worst, -1e10, axis=-1)
        if self.class_id is not None:
            if scores.ndim < 2:
                raise ValueError(
                    f"metric {self.name!r}: class_id needs y_pred with two or more axes, got {scores.shape}"
                )
            labels, scores, weights = (array[..., self.class_id] for array in (labels, scores, weights))
        self._count(labels, scores, weights)

    def _shown(self, values: np.ndarray) -> Any:
        return float(values[0]) if len(values) == 1 else values

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self._dtype, "thresholds": self._given}


class TruePositives(_Thresholded):
    """The weighted number of positives found."""

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: str | None = None) -> None:
        super().__init__(thresholds, 0.5, None, None, name, dtype)

    def result(self) -> Any:
        return self._shown(self.true_positives)


class TrueNegatives(_Thresholded):
    """The weighted number of negatives taken for negatives."""

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: str | None = None) -> None:
        super().__init__(thresholds, 0.5, None, None, name, dtype)

    def result(self) -> Any:
        return self._shown(self.true_negatives)


class FalsePositives(_Thresholded):
    """The weighted number of negatives taken for positives."""

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: str | None = None) -> None:
        super().__init__(thresholds, 0.5, None, None, name, dtype)

    def result(self) -> Any:
        return self._shown(self.false_positives)


class FalseNegatives(_Thresholded):
    """The weighted number of positives that were missed."""

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: str | None = None) -> None:
        super().__init__(thresholds, 0.5, None, None, name, dtype)

    def result(self) -> Any:
        return self._shown(self.false_negatives)


class Precision(_Thresholded):
    """True positives / all predicted positives; of the top_k predictions, or of one class_id, where given."""

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(thresholds, 0.5 if top_k is None else -1e9, top_k, class_id, name, dtype)

    def result(self) -> Any:
        return self._shown(divide(self.true_positives, self.true_positives + self.false_positives))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"top_k": self.top_k, "class_id": self.class_id}


class Recall(_Thresholded):
    """True positives / all positives; of the top_k predictions, or of one class_id, where given."""

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(thresholds, 0.5 if top_k is None else -1e9, top_k, class_id, name, dtype)

    def result(self) -> Any:
        return self._shown(divide(self.true_positives, self.true_positives + self.false_negatives))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"top_k": self.top_k, "class_id": self.class_id}


class AUC(_Confusion):
    """The area under the ROC curve, or under precision against recall ("PR"), by sums over thresholds.

    summation_method: "interpolation" (the mean of neighbours; for "PR" the closed form of Davis and Goadrich, ICML
    2006, section 4), "minoring" or "majoring" (the smaller or larger neighbour).
    multi_label: the mean of the areas of all labels, which are the last axis, with label_weights.
    """

    def __init__(
        self,
        num_thresholds: int = 200,
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
        if str(curve).upper() not in ("ROC", "PR"):
            raise ValueError(f"AUC: expected curve 'ROC' or 'PR', got {curve!r}")
        if str(summation_method).lower() not in ("interpolation", "minoring", "majoring"):
            raise ValueError(
                f"AUC: expected summation_method 'interpolation', 'minoring' or 'majoring', got {summation_method!r}"
            )
        if thresholds is None and num_thresholds <= 1:
            raise ValueError(f"AUC: expected num_thresholds of 2 or more, got {num_thresholds!r}")
        if num_labels and not multi_label:
            raise ValueError("AUC: num_labels is only used with multi_label=True")
        self._given = thresholds
        inner = sorted(thresholds) if thresholds is not None else np.linspace(0, 1, num_thresholds)[1:-1]
        self.thresholds = [-config.epsilon(), *map(float, inner), 1 + config.epsilon()]
        self.num_thresholds = len(self.thresholds)
        self.curve = str(curve).upper()
        self.summation_method = str(summation_method).lower()
        self.multi_label = multi_label
        self.num_labels = num_labels
        self.label_weights = None if label_weights is None else np.asarray(label_weights, np.float64)
        self.from_logits = from_logits
        self._labels: list[_Confusion] = []
        super().__init__(self.thresholds, name, dtype)

    def reset_state(self) -> None:
        super().reset_state()
        self._labels = []

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        labels, scores, weights = self._arrays(y_true, y_pred, sample_weight)
        if self.from_logits:
            scores = 0.5 * (1 + np.tanh(0.5 * scores))
        if not self.multi_label:
            if self.label_weights is not None:
                weights = weights * self.label_weights
            self._count(labels, scores, weights)
            return
        if scores.ndim != 2 or self.num_labels not in (None, scores.shape[-1]):
            expected = f"(n, {self.num_labels or 'labels'})"
            raise ValueError(f"metric {self.name!r}: expected y_pred of shape {expected}, got {scores.shape}")
        if not self._labels:
            self._labels = self._counters(scores.shape[-1])
        for i, label in enumerate(self._labels):
            label._count(labels[:, i], scores[:, i], weights[:, i])

    def _counters(self, count: int) -> list[_Confusion]:
        return [_Confusion(self.thresholds, self.name, self._dtype) for _ in range(count)]

    def get_state(self) -> dict[str, Any]:
        return super().get_state() | {"labels": [label.get_state() for label in self._labels]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        super().set_state(state)
        self._labels = self._counters(len(state["labels"]))
        for label, kept in zip(self._labels, state["labels"], strict=True):
            label.set_state(kept)

    def result(self) -> float:
        if not self.multi_label:
            return self._area(self)
        if not self._labels:
            return 0.0
        areas = np.array([self._area(label) for label in self._labels])
        weights = np.ones(len(areas)) if self.label_weights is None else self.label_weights
        return float(divide((areas * weights).sum(), weights.sum()))

    def _area(self, counts: _Confusion) -> float:
        found, wrong = counts.true_positives, counts.false_positives
        recall = divide(found, found + counts.false_negatives)
        if self.curve == "PR" and self.summation_method == "interpolation":
            return _interpolated(found, wrong, counts.false_negatives)
        x, y = recall, divide(found, found + wrong)
        if self.curve == "ROC":
            x, y = divide(wrong, wrong + counts.true_negatives), recall
        heights = {
            "interpolation": (y[:-1] + y[1:]) / 2,
            "minoring": np.minimum(y[:-1], y[1:]),
            "majoring": np.maximum(y[:-1], y[1:]),
        }[self.summation_method]
        return float(((x[:-1] - x[1:]) * heights).sum())

    def get_config(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dtype": self._dtype,
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
