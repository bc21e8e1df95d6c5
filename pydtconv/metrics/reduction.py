"""Means and sums over all samples seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import replica
from pydtconv.metrics.functions import match_ranks
from pydtconv.metrics.metric import Metric, as_array
from pydtconv.naming import with_default_name
from pydtconv.serialization.objects import serialize_keras_object

__all__ = ["Mean", "MeanMetricWrapper", "Sum"]


def per_sample(
    values: np.ndarray, weights: np.ndarray | None, reduce: Callable[..., Any]
) -> tuple[np.ndarray, np.ndarray | None]:
    """values (n, ...) and weights, which has leading axes of values', reduced to (n,) each."""
    if weights is not None:
        values, weights = match_ranks(values, weights)
        if values.ndim > weights.ndim:
            values = reduce(values, axis=tuple(range(weights.ndim, values.ndim)))
        weights = np.broadcast_to(weights, values.shape)
        values = values * weights
        if weights.ndim > 1:
            weights = reduce(weights, axis=tuple(range(1, weights.ndim)))
    if values.ndim > 1:
        values = reduce(values, axis=tuple(range(1, values.ndim)))
    return values, weights


def masked(mask: np.ndarray, weights: Any) -> np.ndarray:
    """The weights of samples or steps that are 0 where the mask (n, steps) is."""
    mask = mask.astype(np.float64)
    if weights is None:
        return mask
    weights = np.asarray(weights)
    if weights.ndim == mask.ndim + 1 and weights.shape[-1] == 1:
        weights = weights[..., 0]
    return mask * weights.reshape(weights.shape + (1,) * (mask.ndim - weights.ndim))


class _Reduction(Metric):
    """State of Mean and Sum: the sum of all values, the sum of all weights, as double-precision numbers."""

    state_names: tuple[str, ...] = ("total", "count")
    shown_names: tuple[str, ...] = state_names

    def __init__(self, name: str | None = None, dtype: str | None = None) -> None:
        super().__init__(dtype, name)
        self.total = 0.0
        self.count = 0.0

    def reset_state(self) -> None:
        super().reset_state()
        self.total = 0.0
        self.count = 0.0

    def _pydt_add(self, values: Any, weights: Any, reduce: Callable[..., Any]) -> None:
        values = as_array(self, "values", values)
        weights = None if weights is None else as_array(self, "sample_weight", weights)
        if values.dtype.kind != "f":
            values = values.astype(self.dtype)
        values, weights = per_sample(values, weights, reduce)
        self.total += float(values.sum(dtype=np.float64))
        self.count += float(values.size if weights is None else weights.sum(dtype=np.float64))


class Mean(_Reduction):
    """The weighted mean of all values; 0 before the first one."""

    def __init__(self, name: str = "mean", dtype: str | None = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        if type(values) is float and type(sample_weight) is int:  # a batch's loss, after each batch
            self.total += values * sample_weight
            self.count += sample_weight
            return
        if sample_weight is None and np.ndim(values) == 0:  # one number for all samples, of which these may be a share
            sample_weight = replica.current().portion
        self._pydt_add(values, sample_weight, np.mean)

    def result(self) -> float:
        return self.total / self.count if self.count else 0.0


class Sum(_Reduction):
    """The weighted sum of all values."""

    shown_names = ("total",)

    def __init__(self, name: str = "sum", dtype: str | None = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, values: Any, sample_weight: Any = None) -> None:
        self._pydt_add(values, sample_weight, np.sum)

    def result(self) -> float:
        return self.total


class MeanMetricWrapper(Mean):
    """The mean of a function fn(y_true, y_pred, **kwargs) that gives a value for each sample."""

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, dtype: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name or str(getattr(fn, "__name__", type(fn).__name__)), dtype)
        if not callable(fn):
            raise ValueError(f"{type(self).__name__}: fn: expected a function, got {fn!r}")
        self._pydt_fn = fn
        self._pydt_fn_kwargs = kwargs

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:  # type: ignore[override]
        mask = getattr(y_pred, "_keras_mask", None)
        y_true, y_pred = as_array(self, "y_true", y_true), as_array(self, "y_pred", y_pred)
        weights = sample_weight if mask is None else masked(mask, sample_weight)
        super().update_state(self._pydt_fn(y_true, y_pred, **self._pydt_fn_kwargs), weights)

    def get_config(self) -> dict[str, Any]:
        own = {"fn": serialize_keras_object(self._pydt_fn)} if type(self).__init__ is MeanMetricWrapper.__init__ else {}
        return {**own, "name": self.name, "dtype": self._pydt_dtype, **self._pydt_fn_kwargs}


class FunctionMetric(MeanMetricWrapper):
    """Base of metrics whose function has no further arguments: class Name(FunctionMetric, of=function)."""

    _pydt_of: Callable[..., Any]

    def __init__(self, name: str | None = None, dtype: str | None = None) -> None:
        super().__init__(self._pydt_of, name, dtype)

    def __init_subclass__(cls, of: Callable[..., Any] | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if of is not None:
            cls._pydt_of = staticmethod(of)
            cls.__init__ = with_default_name(FunctionMetric.__init__, of.__name__)  # type: ignore[method-assign]
