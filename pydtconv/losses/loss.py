"""Base of all losses: per-sample values, sample weights, reduction."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pydtconv import config, ops, replica, tree
from pydtconv.dtype_policies import gathering_dtype
from pydtconv.dtypes import BFLOAT16, name_of, real, real_array
from pydtconv.naming import checked_name, to_snake_case, with_default_name
from pydtconv.ops.checks import broadcast_shapes, fits
from pydtconv.ops.functions.operands import is_watched
from pydtconv.own_names import OwnNames
from pydtconv.serialization.objects import arguments_of, serialize_keras_object

#: reductions that divide by how many values there are, and all
MEANS = ("sum_over_batch_size", "mean", "mean_with_sample_weight")
REDUCTIONS = (*MEANS, "sum", "none", None)


class Loss(OwnNames):
    """A loss; called with (y_true, y_pred, sample_weight=None), on symbolic tensors or on arrays.

    Subclasses write `call(y_true, y_pred)` in functions of `pydtconv.ops`; it gives a value for each sample (n, ...).
    reduction: "sum_over_batch_size" or "mean" (the sum of the weighted values over their number),
    "mean_with_sample_weight" (over the sum of the weights), "sum", or "none".
    dtype: float32 or float64, which predictions are cast to; None for their own.
    """

    #: whether y_true holds class numbers instead of values of y_pred's kind
    takes_labels = False
    _pydt_former: tuple[str, ...] = ("_pydt_dtype", "_pydt_fn_kwargs")

    def __init__(
        self, name: str | None = None, reduction: str | None = "sum_over_batch_size", dtype: str | None = None
    ) -> None:
        if reduction not in REDUCTIONS:
            raise ValueError(f"{type(self).__name__}: expected reduction to be one of {REDUCTIONS}, got {reduction!r}")
        self.name = checked_name(name or to_snake_case(type(self).__name__))
        self.reduction = reduction
        self._pydt_dtype = None if dtype is None else gathering_dtype(type(self).__name__, dtype)
        if self._pydt_dtype not in (None, "float32", "float64"):
            raise ValueError(f"{type(self).__name__}: dtype: expected float32 or float64, got {dtype!r}")

    @property
    def dtype(self) -> str:
        """The dtype that it was given, else `config.floatx()`."""
        return self._pydt_dtype or config.floatx()

    def call(self, y_true: Any, y_pred: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define call(y_true, y_pred)")

    def check_targets(self, y_true: np.ndarray, y_pred_shape: tuple[int | None, ...]) -> None:
        """Raises ValueError for targets that the loss cannot read; fit calls it on its data before it starts."""

    def counted(self, y_true: Any, values: Any) -> Any:
        """A mask of the values (n, ...) that count where a mean is taken: 1 or 0 of their dtype.  None where all do."""
        return None

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        mask = getattr(y_pred, "_keras_mask", None)
        if tree.is_nested(y_pred) and not isinstance(self, LossFunctionWrapper):  # its own `call` takes structures
            y_true, y_pred = (tree.map_structure(_operand, each) for each in (y_true, y_pred))
        else:
            y_true, y_pred = as_operands(
                _widened(y_true), self._pydt_in_dtype(_widened(y_pred)), labels=self.takes_labels
            )
            if not self.takes_labels:
                y_true, y_pred = match_ranks(y_true, y_pred)
        values = self.call(y_true, y_pred)
        if not hasattr(values, "shape"):
            raise ValueError(f"loss {self.name!r}: expected a tensor, a value for each sample, got {values!r}")
        if isinstance(mask, np.ndarray):
            mask = mask.astype(values.dtype)
        counted = self.counted(y_true, values) if self.reduction in MEANS else None
        if counted is not None:
            mask = counted if mask is None else ops.multiply(counted, _behind(mask, len(values.shape)))
        if mask is not None:
            sample_weight = masked_weights(values, sample_weight, mask, self.reduction)
        return reduce_weighted(values, sample_weight, self.reduction)

    def _pydt_in_dtype(self, y_pred: Any) -> Any:
        if self._pydt_dtype is None:
            return y_pred
        return ops.cast(y_pred if hasattr(y_pred, "dtype") else np.asarray(y_pred), self._pydt_dtype)

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "reduction": self.reduction}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Loss:
        return cls(**arguments_of(config))


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
        super().__init__(name or getattr(fn, "__name__", type(fn).__name__), reduction=reduction, dtype=dtype)
        if not callable(fn):
            raise ValueError(f"{type(self).__name__}: fn: expected a function, got {fn!r}")
        self.fn = fn
        self._pydt_fn_kwargs = kwargs

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return self.fn(y_true, y_pred, **self._pydt_fn_kwargs)

    def get_config(self) -> dict[str, Any]:
        own = {"fn": serialize_keras_object(self.fn)} if type(self).__init__ is LossFunctionWrapper.__init__ else {}
        return own | super().get_config() | self._pydt_fn_kwargs


class FunctionLoss(LossFunctionWrapper):
    """Base of losses whose function has no further arguments: class Name(FunctionLoss, of=function)."""

    _pydt_of: Callable[..., Any]

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str | None = None, dtype: str | None = None
    ) -> None:
        super().__init__(self._pydt_of, reduction, name, dtype)

    def __init_subclass__(cls, of: Callable[..., Any] | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if of is not None:
            cls._pydt_of = staticmethod(of)
            cls.__init__ = with_default_name(FunctionLoss.__init__, of.__name__)  # type: ignore[method-assign]


def as_operands(y_true: Any, y_pred: Any, labels: bool = False) -> tuple[Any, Any]:
    """Lists and arrays as arrays that ops take: floats of the predictions' type; labels that are integers stay so."""
    if not hasattr(y_pred, "apply_op"):
        given = getattr(y_pred, "dtype", None)
        y_pred = np.asarray(y_pred)
        floats = given is not None and y_pred.dtype.kind == "f"  # of lists: floatx, as in Keras
        y_pred = _dense(y_pred, y_pred.dtype if floats else config.floatx())
    if not hasattr(y_true, "apply_op"):
        y_true = np.asarray(y_true)
        dtype = "int64" if labels and y_true.dtype.kind in "iub" else real(name_of(y_pred.dtype))
        y_true = _dense(y_true, dtype)
    elif not labels and real(y_true.dtype) != real(y_pred.dtype):
        y_true = ops.cast(y_true, y_pred.dtype)
    return y_true, y_pred


def check_classes(y_true: Any, y_pred: Any, axis: int = -1) -> None:
    """Raises ValueError, with what mends it, where targets are class numbers, or have another number of classes."""
    given, wanted = tuple(y_true.shape), tuple(y_pred.shape)
    numbers = _without(wanted, axis)
    if wanted[axis] != 1 and (fits(given, numbers) or fits(given, _without(wanted, axis, 1))):
        raise ValueError(
            f"expected y of the output's shape {wanted}, got class numbers of shape {given}: "
            f"use sparse_categorical_crossentropy or to_categorical(y, {wanted[axis]})"
        )
    if len(given) == len(wanted) and fits(_without(given, axis), numbers) and not fits(given, wanted):
        raise ValueError(f"expected y of {wanted[axis]} classes, as the output has them, got {given[axis]}")


def check_numbers(y_true: Any, y_pred: Any, axis: int) -> None:
    """Raises ValueError, with what mends it, where targets have a value for each class instead of class numbers."""
    given, wanted = tuple(y_true.shape), tuple(y_pred.shape)
    if fits(given, wanted) and given[axis] != 1:
        raise ValueError(
            f"expected class numbers of shape {_without(wanted, axis)}, got a value for each class, of shape {given}: "
            f"use categorical_crossentropy or y.argmax({axis})"
        )


def _without(shape: tuple[int | None, ...], axis: int, *one: int) -> tuple[int | None, ...]:
    """The shape without an axis, or with another extent there."""
    axis %= len(shape)
    return (*shape[:axis], *one, *shape[axis + 1 :])


def _operand(x: Any) -> Any:
    """A tensor or an array as it is, a number as an array."""
    return _widened(x) if hasattr(x, "dtype") else np.asarray(x, config.floatx())


def _widened(x: Any) -> Any:
    """A tensor of bfloat16, as layers of mixed precision give it, in float32; anything else as it is."""
    return ops.cast(x, real(BFLOAT16)) if hasattr(x, "apply_op") and x.dtype == BFLOAT16 else x


def _dense(array: np.ndarray, dtype: Any) -> Any:
    """The array, dense and of this dtype; one that a tape watches itself, since nobody watches a copy."""
    return ops.cast(array, str(dtype)) if is_watched(array) else np.ascontiguousarray(real_array("loss", array), dtype)


def broadcast(kind: str, y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Operands in one shape: as they are, or repeated along axes of length 1, as Keras does it, with a warning."""
    given, wanted = tuple(y_true.shape), tuple(y_pred.shape)
    if fits(given, wanted):
        return y_true, y_pred
    try:
        shape = broadcast_shapes(kind, given, wanted)
    except ValueError:
        return y_true, y_pred  # of which the operator says what it expects
    warnings.warn(
        f"loss {kind!r}: y_true {given} and y_pred {wanted} are repeated to {shape}: expected equal shapes",
        stacklevel=2,
    )
    return ops.broadcast_to(y_true, shape), ops.broadcast_to(y_pred, shape)


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


def masked_weights(values: Any, weights: Any, mask: Any, reduction: str | None) -> Any:
    """The weights of values (n, ...) that are 0 where the mask of the predictions, or of the labels that count, is.

    Where the loss is a mean, the others grow such that it is one over the steps that count.  Raises ValueError where
    several processes share the batch, or may have parts of the values, since each would count its own steps.
    """
    here, traced = replica.current(), hasattr(values, "apply_op")
    if traced and (here.parts > 1 or (here.size > 1 and len(values.shape) > 1)):
        raise ValueError(f"loss of masked predictions, or with an ignored class: expected one process, got {here.size}")
    if reduction in ("mean", "sum_over_batch_size"):
        count = math.prod(mask.shape)
        mask = ops.multiply(mask, ops.divide(float(count), ops.maximum(ops.sum(mask), 1.0)))
    if weights is None:
        return mask
    weights = _weight_operand(values, weights)
    return ops.multiply(mask, _behind(weights, len(mask.shape)))


def _weight_operand(values: Any, weights: Any) -> Any:
    """Weights as ops take them, without last axes of length 1 that values lack or that count for all along them.

    A number stays one.
    """
    if not hasattr(weights, "apply_op"):
        weights = np.asarray(weights, values.dtype, order="C")
    elif real(weights.dtype) != real(values.dtype):
        weights = ops.cast(weights, values.dtype)
    shape, rank = tuple(weights.shape), len(values.shape)
    if len(shape) == rank + 1 and shape[-1] == 1:
        shape = shape[:-1]
    while 1 < len(shape) <= rank and shape[-1] == 1 and values.shape[len(shape) - 1] != 1:
        shape = shape[:-1]
    return weights if shape == tuple(weights.shape) else ops.reshape(weights, shape)


def _behind(x: Any, rank: int) -> Any:
    """x with axes of length 1 behind its own, up to this rank."""
    missing = rank - len(x.shape)
    return ops.reshape(x, (*x.shape, *(1,) * missing)) if missing > 0 else x


def reduce_weighted(values: Any, weights: Any, reduction: str | None) -> Any:
    """values (n, ...), times weights, whose axes are the first ones of values' (or none), reduced to a scalar."""
    if weights is not None:
        weights = _weight_operand(values, weights)
        if len(values.shape) == 0 and len(weights.shape) > 0:  # one value of the whole batch, such as Dice's
            values = ops.multiply(ops.add(ops.multiply(weights, 0.0), 1.0), values)
        if tuple(weights.shape) != tuple(values.shape[: len(weights.shape)]):
            raise ValueError(
                f"sample_weight: expected shape {tuple(values.shape)} or its first axes, got {tuple(weights.shape)}"
            )
    if reduction in (None, "none") or len(values.shape) == 0:
        if weights is None:
            return values
        missing = len(values.shape) - len(weights.shape)
        return ops.multiply(values, ops.reshape(weights, (*weights.shape, *(1,) * missing)) if missing else weights)
    mean = ops.WeightedMean(reduction=str(reduction))
    return mean(values) if weights is None else mean(values, weights)
