"""Losses on values: errors, divergences, hinges.

The functions give a value for each sample, over the last axis: y_true, y_pred (n, ..., k) -> (n, ...).
"""

from __future__ import annotations

from typing import Any

from pydtconv import config, ops
from pydtconv.losses import trained_targets
from pydtconv.losses.loss import (
    FunctionLoss,
    LossFunctionWrapper,
    as_operands,
    broadcast,
    check_classes,
    match_ranks,
)
from pydtconv.naming import defined_in


def _elementwise(kind: str, y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    y_true, y_pred = broadcast(kind, *match_ranks(*as_operands(y_true, y_pred)))
    op = ops.ElementwiseLoss(kind=kind, delta=delta, epsilon=config.epsilon())
    return trained_targets.values(op, y_true, y_pred) if trained_targets.trains(y_true) else op(y_pred, y_true)


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
    check_classes(y_true, y_pred)
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


class MeanSquaredError(FunctionLoss, of=mean_squared_error):
    """The mean of (y_true - y_pred)^2."""


class MeanAbsoluteError(FunctionLoss, of=mean_absolute_error):
    """The mean of |y_true - y_pred|."""


class MeanAbsolutePercentageError(FunctionLoss, of=mean_absolute_percentage_error):
    """The mean of 100 |y_true - y_pred| / |y_true|."""


class MeanSquaredLogarithmicError(FunctionLoss, of=mean_squared_logarithmic_error):
    """The mean of (log(1 + y_true) - log(1 + y_pred))^2."""


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


class LogCosh(FunctionLoss, of=log_cosh):
    """The mean of log(cosh(y_pred - y_true))."""


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


class KLDivergence(FunctionLoss, of=kl_divergence):
    """The sum of y_true log(y_true / y_pred)."""


class Poisson(FunctionLoss, of=poisson):
    """The mean of y_pred - y_true log(y_pred)."""


class Hinge(FunctionLoss, of=hinge):
    """The mean of max(1 - y_true y_pred, 0)."""


class SquaredHinge(FunctionLoss, of=squared_hinge):
    """The mean of max(1 - y_true y_pred, 0)^2."""


class CategoricalHinge(FunctionLoss, of=categorical_hinge):
    """The mean of max(largest wrong score - right score + 1, 0)."""


__all__ = defined_in(globals())
