"""Losses on values: errors, divergences, hinges.

The functions give a value for each sample, over the last axis: y_true, y_pred (n, ..., k) -> (n, ...).
"""

from __future__ import annotations

from typing import Any

from pydtconv import config, ops
from pydtconv.losses import trained_targets
from pydtconv.losses.loss import LossFunctionWrapper, as_operands, match_ranks


def _elementwise(kind: str, y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    y_true, y_pred = match_ranks(*as_operands(y_true, y_pred))
    if kind in trained_targets.KINDS and trained_targets.trains(y_true):
        return trained_targets.elementwise(kind, y_true, y_pred, delta, config.epsilon())
    return ops.ElementwiseLoss(kind=kind, delta=delta, epsilon=config.epsilon())(y_pred, y_true)


def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of (y_true - y_pred)^2."""
    return _elementwise("mse", y_true, y_pred)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of |y_true - y_pred|."""
    return _elementwise("mae", y_true, y_pred)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of 100 |y_true - y_pred| / |y_true|."""
    return _elementwise("mape", y_true, y_pred)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Any:
    """The mean of (log(1 + y_true) - log(1 + y_pred))^2."""
    return _elementwise("msle", y_true, y_pred)


def log_cosh(y_true: Any, y_pred: Any) -> Any:
    """The mean of log(cosh(y_pred - y_true))."""
    return _elementwise("logcosh", y_true, y_pred)


def kl_divergence(y_true: Any, y_pred: Any) -> Any:
    """The sum of y_true log(y_true / y_pred)."""
    return _elementwise("kl_divergence", y_true, y_pred)


def poisson(y_true: Any, y_pred: Any) -> Any:
    """The mean of y_pred - y_true log(y_pred)."""
    return _elementwise("poisson", y_true, y_pred)


def hinge(y_true: Any, y_pred: Any) -> Any:
    """The mean of max(1 - y_true y_pred, 0); labels that are all 0 or 1 are read as -1 and 1."""
    return _elementwise("hinge", y_true, y_pred)


def squared_hinge(y_true: Any, y_pred: Any) -> Any:
    """The mean of max(1 - y_true y_pred, 0)^2, with labels as `hinge` reads them."""
    return _elementwise("squared_hinge", y_true, y_pred)


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    """The mean of error^2 / 2 up to delta, of a straight line of slope delta beyond."""
    return _elementwise("huber", y_true, y_pred, float(delta))


def categorical_hinge(y_true: Any, y_pred: Any) -> Any:
    """max(largest wrong score - right score + 1, 0)."""
    y_true, y_pred = as_operands(y_true, y_pred)
    right = ops.sum(ops.multiply(y_true, y_pred), axis=-1)
    wrong = ops.max(ops.multiply(ops.subtract(1.0, y_true), y_pred), axis=-1)
    return ops.relu(ops.add(ops.subtract(wrong, right), 1.0))


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """The negative cosine of the angle between y_true and y_pred: -1 where they agree."""
    y_true, y_pred = match_ranks(*as_operands(y_true, y_pred))
    inner = ops.sum(ops.multiply(y_true, y_pred), axis=axis)
    norms = ops.multiply(_squares(y_true, axis), _squares(y_pred, axis))
    return ops.negative(ops.divide(inner, ops.sqrt(norms)))


def _squares(x: Any, axis: int) -> Any:
    return ops.maximum(ops.sum(ops.square(x), axis=axis), 1e-12)


class MeanSquaredError(LossFunctionWrapper):
    """The mean of (y_true - y_pred)^2."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "mean_squared_error",
        dtype: str | None = None,
    ) -> None:
        super().__init__(mean_squared_error, reduction, name, dtype)


class MeanAbsoluteError(LossFunctionWrapper):
    """The mean of |y_true - y_pred|."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "mean_absolute_error",
        dtype: str | None = None,
    ) -> None:
        super().__init__(mean_absolute_error, reduction, name, dtype)


class MeanAbsolutePercentageError(LossFunctionWrapper):
    """The mean of 100 |y_true - y_pred| / |y_true|."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "mean_absolute_percentage_error",
        dtype: str | None = None,
    ) -> None:
        super().__init__(mean_absolute_percentage_error, reduction, name, dtype)


class MeanSquaredLogarithmicError(LossFunctionWrapper):
    """The mean of (log(1 + y_true) - log(1 + y_pred))^2."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "mean_squared_logarithmic_error",
        dtype: str | None = None,
    ) -> None:
        super().__init__(mean_squared_logarithmic_error, reduction, name, dtype)


class Huber(LossFunctionWrapper):
    """Half the squared error up to delta, linear beyond."""

    def __init__(
        self,
        delta: float = 1.0,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "huber_loss",
        dtype: str | None = None,
    ) -> None:
        super().__init__(huber, reduction, name, dtype, delta=delta)


class LogCosh(LossFunctionWrapper):
    """The mean of log(cosh(y_pred - y_true))."""

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str | None = "log_cosh", dtype: str | None = None
    ) -> None:
        super().__init__(log_cosh, reduction, name, dtype)


class CosineSimilarity(LossFunctionWrapper):
    """The negative mean cosine between y_true and y_pred."""

    def __init__(
        self,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "cosine_similarity",
        dtype: str | None = None,
    ) -> None:
        super().__init__(cosine_similarity, reduction, name, dtype, axis=axis)


class KLDivergence(LossFunctionWrapper):
    """The sum of y_true log(y_true / y_pred)."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "kl_divergence",
        dtype: str | None = None,
    ) -> None:
        super().__init__(kl_divergence, reduction, name, dtype)


class Poisson(LossFunctionWrapper):
    """The mean of y_pred - y_true log(y_pred)."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "poisson",
        dtype: str | None = None,
    ) -> None:
        super().__init__(poisson, reduction, name, dtype)


class Hinge(LossFunctionWrapper):
    """The mean of max(1 - y_true y_pred, 0)."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "hinge",
        dtype: str | None = None,
    ) -> None:
        super().__init__(hinge, reduction, name, dtype)


class SquaredHinge(LossFunctionWrapper):
    """The mean of max(1 - y_true y_pred, 0)^2."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "squared_hinge",
        dtype: str | None = None,
    ) -> None:
        super().__init__(squared_hinge, reduction, name, dtype)


class CategoricalHinge(LossFunctionWrapper):
    """The mean of max(largest wrong score - right score + 1, 0)."""

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "categorical_hinge",
        dtype: str | None = None,
    ) -> None:
        super().__init__(categorical_hinge, reduction, name, dtype)
