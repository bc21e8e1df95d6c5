"""Counts of right and wrong positives and negatives, precision and recall.

A prediction counts as positive at a threshold when it is greater.  The counts of all thresholds come from one
histogram: a prediction falls into the bin of how many (sorted) thresholds it exceeds, and the positives at a threshold
are the sum of the bins above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv.metrics.functions import match_ranks
from pydtconv.metrics.metric import Metric, as_array
from pydtconv.serialization.budget import claim

__all__ = ["FalseNegatives", "FalsePositives", "Precision", "Recall", "TrueNegatives", "TruePositives"]


def divide(x: Any, y: Any) -> np.ndarray:
    """x / y, 0 where y is 0."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    return np.divide(x, y, out=np.zeros(np.broadcast_shapes(x.shape, y.shape)), where=y != 0)


def claim_thresholds(metric: Any, count: int) -> None:
    """Before so many thresholds are made, by default, with the counts of each."""
    claim(64 * count, f"{type(metric).__name__}: num_thresholds: {count}")


def of_class(metric: Any, class_id: int, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The arrays, (..., classes), of one class.  Raises ValueError where there is none of this number."""
    shape = arrays[1].shape
    if len(shape) < 2 or not -shape[-1] <= class_id < shape[-1]:
        raise ValueError(
            f"metric {metric.name!r}: class_id needs y_pred with two or more axes and a class {class_id}, got {shape}"
        )
    return tuple(array[..., class_id] for array in arrays)


class Confusion(Metric):
    """Counts for every threshold: true_positives, false_positives, true_negatives, false_negatives (thresholds)."""

    state_names: tuple[str, ...] = ("true_positives", "false_positives", "true_negatives", "false_negatives")
    shown_names: tuple[str, ...] = state_names

    def __init__(self, thresholds: Sequence[float], name: str | None, dtype: str | None) -> None:
        super().__init__(dtype, name)
        order = np.argsort(thresholds, kind="stable")
        self._limits = np.asarray(thresholds, np.float64)[order]
        self._order = np.argsort(order, kind="stable")
        self._begin(self._limits.shape)

    def _begin(self, shape: tuple[int, ...]) -> None:
        self.true_positives, self.false_positives = np.zeros(shape), np.zeros(shape)
        self.true_negatives, self.false_negatives = np.zeros(shape), np.zeros(shape)

    def reset_state(self) -> None:
        super().reset_state()
        self._begin(self.true_positives.shape)

    def _count(self, y_true: np.ndarray, y_pred: np.ndarray, weights: np.ndarray, place: Any = ...) -> None:
        """Adds samples of one shape; thresholds are rounded to the dtype of the predictions, as 0.6 of float32 is.

        place: where the counts of the thresholds lie in those that are kept.
        """
        bins = np.searchsorted(self._limits.astype(y_pred.dtype), y_pred.ravel(), side="left")
        count, positive = len(self._limits) + 1, y_true.ravel().astype(bool)
        weights = weights.ravel()
        right = np.bincount(bins, weights * positive, count)
        wrong = np.bincount(bins, weights * ~positive, count)
        above = np.cumsum(right[::-1])[::-1][1:], np.cumsum(wrong[::-1])[::-1][1:]
        self.true_positives[place] += above[0][self._order]
        self.false_positives[place] += above[1][self._order]
        self.false_negatives[place] += (right.sum() - above[0])[self._order]
        self.true_negatives[place] += (wrong.sum() - above[1])[self._order]

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
        scores = y_pred.astype(y_pred.dtype if y_pred.dtype.kind == "f" else np.float64)
        return y_true, scores, np.broadcast_to(weights.astype(np.float64), y_pred.shape)


class _Thresholded(Confusion):
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
            labels, scores, weights = of_class(self, self.class_id, labels, scores, weights)
        self._count(labels, scores, weights)

    def _shown(self, values: np.ndarray) -> Any:
        return float(values[0]) if len(values) == 1 else values

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self._pydt_dtype, "thresholds": self._given}


class _Count(_Thresholded):
    """One of the counts."""

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: str | None = None) -> None:
        super().__init__(thresholds, 0.5, None, None, name, dtype)


class TruePositives(_Count):
    """The weighted number of positives found."""

    shown_names = ("true_positives",)

    def result(self) -> Any:
        return self._shown(self.true_positives)


class TrueNegatives(_Count):
    """The weighted number of negatives taken for negatives."""

    shown_names = ("true_negatives",)

    def result(self) -> Any:
        return self._shown(self.true_negatives)


class FalsePositives(_Count):
    """The weighted number of negatives taken for positives."""

    shown_names = ("false_positives",)

    def result(self) -> Any:
        return self._shown(self.false_positives)


class FalseNegatives(_Count):
    """The weighted number of positives that were missed."""

    shown_names = ("false_negatives",)

    def result(self) -> Any:
        return self._shown(self.false_negatives)


class _Share(_Thresholded):
    """A share of true positives, of the top_k predictions, or of one class_id."""

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(thresholds, 0.5 if top_k is None else -1e9, top_k, class_id, name, dtype)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"top_k": self.top_k, "class_id": self.class_id}


class Precision(_Share):
    """True positives / all predicted positives; of the top_k predictions, or of one class_id, where given."""

    shown_names = ("true_positives", "false_positives")

    def result(self) -> Any:
        return self._shown(divide(self.true_positives, self.true_positives + self.false_positives))


class Recall(_Share):
    """True positives / all positives; of the top_k predictions, or of one class_id, where given."""

    shown_names = ("true_positives", "false_negatives")

    def result(self) -> Any:
        return self._shown(divide(self.true_positives, self.true_positives + self.false_negatives))
