"""Pooling, softmax, normalization and cross-entropy under the names and argument orders of `keras.ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.ops.layer_normalization import LayerNorm
from pydtconv.ops.losses import CrossEntropy
from pydtconv.ops.normalization import BatchNorm
from pydtconv.ops.pooling import AveragePool, MaxPool, Padding
from pydtconv.ops.softmax import LogSoftmax, Softmax


def _value(x: Any) -> Any:
    """A symbolic value as it is, anything else as a float array."""
    if hasattr(x, "apply_op"):
        return x
    array = np.asarray(x)
    return array if array.dtype.name in ("float32", "float64") else array.astype(config.floatx())


def _pair(name: str, value: Any) -> tuple[int, int]:
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) == 1:
        pair *= 2
    if len(pair) != 2:
        raise ValueError(f"{name}: expected one or two integers, got {value!r}")
    return pair


def _with_axis_last(function: Callable[[Any], Any], x: Any, axis: int) -> Any:
    """function on x with `axis` moved to the end, and back."""
    rank = len(x.shape)
    if not -rank <= axis < rank:
        raise ValueError(f"axis: expected one of {rank} dimensions, got {axis}")
    axis %= rank
    if axis == rank - 1:
        return function(x)
    from pydtconv.ops import transpose

    there = (*range(axis), *range(axis + 1, rank), axis)
    back = (*range(axis), rank - 1, *range(axis, rank - 1))
    return transpose(function(transpose(x, there)), back)


def _pool(op: type[MaxPool] | type[AveragePool], x: Any, size: Any, strides: Any, padding: Padding, form: Any) -> Any:
    form = form or config.image_data_format()
    if form not in ("channels_last", "channels_first"):
        raise ValueError(f"data_format: expected 'channels_last' or 'channels_first', got {form!r}")
    node = op(_pair("pool_size", size), None if strides is None else _pair("strides", strides), padding)
    return _with_axis_last(node, _value(x), -1 if form == "channels_last" else 1)


def max_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: Padding = "valid", data_format: str | None = None
) -> Any:
    """Maximum over windows of an image."""
    return _pool(MaxPool, inputs, pool_size, strides, padding, data_format)


def average_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: Padding = "valid", data_format: str | None = None
) -> Any:
    """Mean over windows of an image; padding does not count."""
    return _pool(AveragePool, inputs, pool_size, strides, padding, data_format)


def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x) / sum(exp(x)) along an axis."""
    return Softmax(axis)(_value(x))


def log_softmax(x: Any, axis: int = -1) -> Any:
    """log(softmax(x))."""
    return LogSoftmax(axis)(_value(x))


def batch_normalization(
    x: Any, mean: Any, variance: Any, axis: int, offset: Any = None, scale: Any = None, epsilon: float = 0.001
) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset along an axis, with statistics that are given."""
    op = BatchNorm(epsilon, scale=scale is not None, center=offset is not None, frozen=True)
    vectors = [_value(v) for v in (scale, offset, mean, variance) if v is not None]
    return _with_axis_last(lambda moved: op(moved, *vectors), _value(x), axis)


def layer_normalization(x: Any, gamma: Any = None, beta: Any = None, axis: Any = -1, epsilon: float = 0.001) -> Any:
    """Normalization of each sample over the last axis or axes."""
    axis = axis if isinstance(axis, int) else tuple(axis)
    op = LayerNorm(axis, epsilon, scale=gamma is not None, center=beta is not None)
    return op(_value(x), *(_value(v) for v in (gamma, beta) if v is not None))


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """-sum(target * log(output)) along an axis; see `CrossEntropy`."""
    return CrossEntropy("categorical", from_logits, axis=axis, epsilon=config.epsilon())(_value(output), _value(target))


def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """-log(output[target]) along an axis, for integer targets; see `CrossEntropy`."""
    labels = target if hasattr(target, "apply_op") else np.asarray(target)
    if isinstance(labels, np.ndarray) and labels.dtype.name not in ("int32", "int64", "float32", "float64"):
        labels = labels.astype("int64")
    return CrossEntropy("sparse", from_logits, axis=axis, epsilon=config.epsilon())(_value(output), labels)
