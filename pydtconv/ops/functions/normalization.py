"""Normalization."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.ops.checks import normalize_axes
from pydtconv.ops.functions.arithmetic import add, multiply, rsqrt, square, subtract
from pydtconv.ops.functions.operands import as_float, as_operand, in_reals, is_symbolic, is_watched, of_one_dtype
from pydtconv.ops.functions.reduction import mean
from pydtconv.ops.functions.shape import reshape, transpose, with_axis_last
from pydtconv.ops.layer_normalization import LayerNorm
from pydtconv.ops.normalization import BatchNorm
from pydtconv.ops.parts import exported

__all__ = exported(nn="batch_normalization layer_normalization")


def batch_normalization(
    x: Any, mean: Any, variance: Any, axis: int, offset: Any = None, scale: Any = None, epsilon: float = 0.001
) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset along an axis, with statistics that are given."""
    x = as_float(x)
    if not (_is_state(mean) and _is_state(variance)):
        return _by_arithmetic(x, mean, variance, axis, offset, scale, epsilon)
    op = BatchNorm(epsilon, scale=scale is not None, center=offset is not None, frozen=True)
    x, *vectors = of_one_dtype(x, *(v for v in (scale, offset, mean, variance) if v is not None))
    return with_axis_last(lambda moved: op(moved, *vectors), x, axis)


def _is_state(statistic: Any) -> bool:
    """Whether nothing is differentiated by it: an array that no tape watches, a variable that is not trained."""
    if is_symbolic(statistic):
        return getattr(statistic, "trainable", True) is False
    return not is_watched(np.asarray(statistic))


@in_reals
def _by_arithmetic(x: Any, mean: Any, variance: Any, axis: int, offset: Any, scale: Any, epsilon: float) -> Any:
    """The same, with gradients by mean and variance, for which the operator has none."""
    along = [1] * len(x.shape)
    (axis,) = normalize_axes("batch_normalization", axis, len(along))
    along[axis] = -1
    factor = rsqrt(add(as_operand(variance), float(epsilon)))
    factor = factor if scale is None else multiply(factor, scale)
    y = multiply(subtract(x, reshape(mean, along)), reshape(factor, along))
    return y if offset is None else add(y, reshape(offset, along))


def layer_normalization(
    x: Any, gamma: Any = None, beta: Any = None, axis: Any = -1, epsilon: float | None = None, **kwargs: Any
) -> Any:
    """Normalization over an axis or several, gamma and beta of their extents; epsilon: None for that of config.

    rms_scaling: Keras's deprecated one, by the deviation from the mean, which stays; beta is not used.
    """
    rms_scaling = kwargs.pop("rms_scaling", False)
    if kwargs:
        raise ValueError(f"layer_normalization: expected no further arguments, got {', '.join(kwargs)}")
    epsilon = config.epsilon() if epsilon is None else epsilon
    x, weights = as_float(x), [as_operand(v) for v in (gamma, beta) if v is not None]
    axes = normalize_axes("layer_normalization", axis if isinstance(axis, int) else tuple(axis), len(x.shape))
    if rms_scaling:
        warnings.warn("layer_normalization: rms_scaling is deprecated: use rms_normalization", stacklevel=3)
        return by_deviation(x, weights[0] if gamma is not None else None, axes, epsilon)
    kind: dict[str, Any] = {"epsilon": epsilon, "scale": gamma is not None, "center": beta is not None}
    there = (*(i for i in range(len(x.shape)) if i not in axes), *sorted(axes))
    if there == tuple(range(len(x.shape))):
        return LayerNorm(axis if isinstance(axis, int) else tuple(axis), **kind)(x, *weights)
    moved = transpose(x, there)
    weights = [reshape(w, moved.shape[-len(axes) :]) for w in weights]
    y = LayerNorm(tuple(range(-len(axes), 0)), **kind)(moved, *weights)
    return transpose(y, tuple(there.index(i) for i in range(len(there))))


@in_reals
def by_deviation(x: Any, gamma: Any, axes: Sequence[int], epsilon: float) -> Any:
    """x / sqrt(variance + epsilon) * gamma: x keeps its mean.  axes: from the front, in rising order."""
    variance = mean(square(subtract(x, mean(x, axes, True))), axes, True)
    y = multiply(x, rsqrt(add(variance, float(epsilon))))
    return y if gamma is None else multiply(y, reshape(gamma, [n if d in axes else 1 for d, n in enumerate(x.shape)]))
