"""Losses on values: the functions give a value for each sample, the mean over the last axis.

y_true, y_pred: (n, ..., k); result: (n, ...).
"""

from __future__ import annotations

import math
from typing import Any

from pydtconv import config, ops
from pydtconv.losses.loss import LossFunctionWrapper, match_ranks


def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """mean (y_true - y_pred)^2."""
    y_true, y_pred = match_ranks(y_true, y_pred)
    return ops.mean(ops.square(ops.subtract(y_pred, y_true)), axis=-1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Any:
    """mean |y_true - y_pred|."""
    y_true, y_pred = match_ranks(y_true, y_pred)
    return ops.mean(ops.abs(ops.subtract(y_pred, y_true)), axis=-1)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Any:
    """mean 100 |y_true - y_pred| / |y_true|."""
    y_true, y_pred = match_ranks(y_true, y_pred)
    scale = ops.maximum(ops.abs(y_true), config.epsilon())
    return ops.multiply(ops.mean(ops.abs(ops.divide(ops.subtract(y_pred, y_true), scale)), axis=-1), 100.0)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Any:
    """mean (log(1 + y_true) - log(1 + y_pred))^2."""
    y_true, y_pred = match_ranks(y_true, y_pred)
    first = ops.log(ops.add(ops.maximum(y_pred, config.epsilon()), 1.0))
    second = ops.log(ops.add(ops.maximum(y_true, config.epsilon()), 1.0))
    return ops.mean(ops.square(ops.subtract(first, second)), axis=-1)


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    """error^2 / 2 up to delta, a straight line of slope delta beyond: c^2 / 2 + delta (|e| - c), c = min(|e|, delta)."""
    y_true, y_pred = match_ranks(y_true, y_pred)
    error = ops.abs(ops.subtract(y_pred, y_true))
    inner = ops.minimum(error, delta)
    outer = ops.multiply(ops.subtract(error, inner), delta)
    return ops.mean(ops.add(ops.multiply(ops.square(inner), 0.5), outer), axis=-1)


def log_cosh(y_true: Any, y_pred: Any) -> Any:
    """mean log(cosh(y_pred - y_true)), as x + softplus(-2 x) - log 2."""
    y_true, y_pred = match_ranks(y_true, y_pred)
    error = ops.subtract(y_pred, y_true)
    values = ops.add(error, ops.softplus(ops.multiply(error, -2.0)))
    return ops.mean(ops.subtract(values, math.log(2.0)), axis=-1)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """The negative cosine of the angle between y_true and y_pred: -1 where they agree."""
    y_true, y_pred = match_ranks(y_true, y_pred)
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


