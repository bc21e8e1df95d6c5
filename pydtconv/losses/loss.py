"""Base of all losses: per-sample values, sample weights, reduction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv.utils.naming import to_snake_case

REDUCTIONS = ("sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none", None)


class Loss:
    """A loss; called with (y_true, y_pred, sample_weight=None), on symbolic tensors or on arrays.

    Subclasses write `call(y_true, y_pred)` in functions of `pydtconv.ops`; it gives a value for each sample (n, ...).
    reduction: "sum_over_batch_size" or "mean" (the sum of the weighted values over their number),
    "mean_with_sample_weight" (over the sum of the weights), "sum", or "none".
    """

    def __init__(
        self, name: str | None = None, reduction: str | None = "sum_over_batch_size", dtype: str | None = None
    ) -> None:
        if reduction not in REDUCTIONS:
            raise ValueError(f"{type(self).__name__}: expected reduction to be one of {REDUCTIONS}, got {reduction!r}")
        self.name = name or to_snake_case(type(self).__name__)
        self.reduction = reduction
        self._dtype = str(dtype) if dtype is not None else None

    def call(self, y_true: Any, y_pred: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define call(y_true, y_pred)")

    def prepare(self, y_true: np.ndarray, y_pred_shape: tuple[int | None, ...]) -> np.ndarray:
        """Labels as `call` reads them, checked; fit calls it on each batch's array before it enters the graph."""
        return y_true

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        if not hasattr(y_pred, "apply_op"):
            y_pred = as_floats(y_pred)
        if not hasattr(y_true, "apply_op"):
            y_true = self.prepare(np.asarray(y_true), np.shape(y_pred))
            y_true = y_true if self.takes_labels else as_floats(y_true, y_pred.dtype)
        if not self.takes_labels:
            y_true, y_pred = match_ranks(y_true, y_pred)
        return reduce_weighted(self.call(y_true, y_pred), sample_weight, self.reduction)

    #: whether y_true holds class numbers instead of values of y_pred's kind
    takes_labels = False

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Loss:
        return cls(**config)


class LossFunctionWrapper(Loss):
    """The loss of a function fn(y_true, y_pred, **kwargs) written in `pydtconv.ops`, which gives per-sample values."""

    def __init__(
        self,
        fn: Callable[..., Any],
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
        dtype: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name or getattr(fn, "__name__", type(fn).__name__), reduction, dtype)
        self.fn = fn
        self._fn_kwargs = kwargs

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return self.fn(y_true, y_pred, **self._fn_kwargs)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | self._fn_kwargs


def as_floats(value: Any, dtype: str | None = None) -> Any:
    """A list or array as an array of a float type: the given one, its own, or the default one."""
    array = np.asarray(value)
    if dtype is None:
        from pydtconv import config

        dtype = array.dtype.name if array.dtype.kind == "f" else config.floatx()
    return np.ascontiguousarray(array, dtype=dtype)


def match_ranks(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Brings operands whose ranks differ by one to the same rank, where the extra axis is a last one of length 1."""
    rank_1, rank_2 = len(x1.shape), len(x2.shape)
    if rank_1 == rank_2 + 1 and x1.shape[-1] == 1:
        if rank_2 == 1:
            return x1, ops.reshape(x2, (*x2.shape, 1))
        return ops.reshape(x1, x1.shape[:-1]), x2
    if rank_2 == rank_1 + 1 and x2.shape[-1] == 1:
        if rank_1 == 1:
            return ops.reshape(x1, (*x1.shape, 1)), x2
        return x1, ops.reshape(x2, x2.shape[:-1])
    return x1, x2


def reduce_weighted(values: Any, weights: Any, reduction: str | None) -> Any:
    """values (n, ...), times weights of shape (n, ...) with as many or fewer axes, reduced to a scalar."""
    total_weight = None
    if weights is not None:
        if not hasattr(weights, "apply_op"):
            weights = as_floats(weights, values.dtype)
        rank = len(values.shape)
        if len(weights.shape) == rank + 1 and weights.shape[-1] == 1:
            weights = ops.reshape(weights, weights.shape[:-1])
        if tuple(weights.shape) != tuple(values.shape[: len(weights.shape)]):
            raise ValueError(
                f"sample_weight: expected shape {tuple(values.shape)} or its leading axes, got {tuple(weights.shape)}"
            )
        total_weight = ops.sum(weights)
        if len(weights.shape) < rank:
            weights = ops.reshape(weights, (*weights.shape, *(1,) * (rank - len(weights.shape))))
        values = ops.multiply(values, weights)
    if reduction in (None, "none") or len(values.shape) == 0:
        return values
    if reduction == "sum":
        return ops.sum(values)
    if reduction == "mean_with_sample_weight" and total_weight is not None:
        return ops.divide(ops.sum(values), total_weight)
    return ops.mean(values)
