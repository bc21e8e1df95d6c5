"""Metrics that are the mean of a function of `functions.py`: accuracies, errors, cross-entropies, hinges."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.metrics import functions
from pydtconv.metrics.metric import as_array
from pydtconv.metrics.reduction import FunctionMetric, Mean, MeanMetricWrapper, masked
from pydtconv.naming import defined_in


class Accuracy(FunctionMetric, of=functions.accuracy):
    """How often predictions equal labels."""


class BinaryAccuracy(MeanMetricWrapper):
    """How often predictions above the threshold match binary labels."""

    def __init__(self, name: str = "binary_accuracy", dtype: str | None = None, threshold: float = 0.5) -> None:
        if not 0 <= threshold <= 1:
            raise ValueError(f"BinaryAccuracy: expected threshold between 0 and 1, got {threshold!r}")
        super().__init__(functions.binary_accuracy, name, dtype, threshold=threshold)


class CategoricalAccuracy(FunctionMetric, of=functions.categorical_accuracy):
    """How often the largest prediction is at the class of one-hot labels."""


class SparseCategoricalAccuracy(FunctionMetric, of=functions.sparse_categorical_accuracy):
    """How often the largest prediction is at the class of integer labels."""


class TopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the class of one-hot labels is among the k largest predictions."""

    def __init__(self, k: int = 5, name: str = "top_k_categorical_accuracy", dtype: str | None = None) -> None:
        super().__init__(functions.top_k_categorical_accuracy, name, dtype, k=k)
        self.k = k


class SparseTopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the class of integer labels is among the k largest predictions."""

    def __init__(
        self,
        k: int = 5,
        name: str = "sparse_top_k_categorical_accuracy",
        dtype: str | None = None,
        from_sorted_ids: bool = False,
    ) -> None:
        super().__init__(functions.sparse_top_k_categorical_accuracy, name, dtype, k=k, from_sorted_ids=from_sorted_ids)
        self.k, self.from_sorted_ids = k, from_sorted_ids


class MeanSquaredError(FunctionMetric, of=functions.mean_squared_error):
    """The mean of (y_true - y_pred)^2."""


class RootMeanSquaredError(Mean):
    """The root of the mean of (y_true - y_pred)^2 over everything seen."""

    def __init__(self, name: str = "root_mean_squared_error", dtype: str | None = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        y_true, y_pred = as_array(self, "y_true", y_true), as_array(self, "y_pred", y_pred)
        y_true, y_pred = functions.match_ranks(*functions.as_floats(y_true, y_pred))
        super().update_state(np.square(y_pred - y_true), sample_weight)

    def result(self) -> float:
        return super().result() ** 0.5


class MeanAbsoluteError(FunctionMetric, of=functions.mean_absolute_error):
    """The mean of |y_true - y_pred|."""


class MeanAbsolutePercentageError(FunctionMetric, of=functions.mean_absolute_percentage_error):
    """The mean of 100 |y_true - y_pred| / |y_true|."""


class MeanSquaredLogarithmicError(FunctionMetric, of=functions.mean_squared_logarithmic_error):
    """The mean of (log(1 + y_true) - log(1 + y_pred))^2."""


class LogCoshError(MeanMetricWrapper):
    """The mean of log(cosh(y_pred - y_true))."""

    def __init__(self, name: str = "logcosh", dtype: str | None = None) -> None:
        super().__init__(functions.log_cosh, name, dtype)


class CosineSimilarity(MeanMetricWrapper):
    """The mean cosine between y_true and y_pred."""

    def __init__(self, name: str = "cosine_similarity", dtype: str | None = None, axis: int = -1) -> None:
        super().__init__(functions.cosine_similarity, name, dtype, axis=axis)


class BinaryCrossentropy(MeanMetricWrapper):
    """The mean binary cross-entropy."""

    def __init__(
        self,
        name: str = "binary_crossentropy",
        dtype: str | None = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
    ) -> None:
        super().__init__(
            functions.binary_crossentropy, name, dtype, from_logits=from_logits, label_smoothing=label_smoothing
        )


class CategoricalCrossentropy(MeanMetricWrapper):
    """The mean cross-entropy of one-hot labels."""

    def __init__(
        self,
        name: str = "categorical_crossentropy",
        dtype: str | None = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
        axis: int = -1,
    ) -> None:
        super().__init__(
            functions.categorical_crossentropy,
            name,
            dtype,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
        )


class SparseCategoricalCrossentropy(MeanMetricWrapper):
    """The mean cross-entropy of integer labels."""

    def __init__(
        self,
        name: str = "sparse_categorical_crossentropy",
        dtype: str | None = None,
        from_logits: bool = False,
        ignore_class: int | None = None,
        axis: int = -1,
    ) -> None:
        super().__init__(
            functions.sparse_categorical_crossentropy,
            name,
            dtype,
            from_logits=from_logits,
            ignore_class=ignore_class,
            axis=axis,
        )

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        ignored = self._pydt_fn_kwargs["ignore_class"]
        if sample_weight is not None and ignored is not None:  # without weights all samples count, as in Keras
            labels = functions.labels_of(as_array(self, "y_true", y_true), as_array(self, "y_pred", y_pred))
            sample_weight = masked(labels != ignored, sample_weight)
        super().update_state(y_true, y_pred, sample_weight)


class KLDivergence(FunctionMetric, of=functions.kl_divergence):
    """The mean of y_true log(y_true / y_pred), summed over the last axis."""


class Poisson(FunctionMetric, of=functions.poisson):
    """The mean of y_pred - y_true log(y_pred)."""


class Hinge(FunctionMetric, of=functions.hinge):
    """The mean of max(1 - y_true y_pred, 0)."""


class SquaredHinge(FunctionMetric, of=functions.squared_hinge):
    """The mean of max(1 - y_true y_pred, 0)^2."""


class CategoricalHinge(FunctionMetric, of=functions.categorical_hinge):
    """The mean of max(largest wrong score - right score + 1, 0)."""


__all__ = defined_in(globals())
