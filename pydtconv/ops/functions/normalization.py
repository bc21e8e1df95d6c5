"""Normalization."""

from __future__ import annotations

from typing import Any

from pydtconv import config
from pydtconv.ops.checks import normalize_axes
from pydtconv.ops.functions.operands import as_float, as_operand
from pydtconv.ops.functions.shape import reshape, transpose, with_axis_last
from pydtconv.ops.layer_normalization import LayerNorm
from pydtconv.ops.normalization import BatchNorm

__all__ = ["batch_normalization", "layer_normalization"]


def batch_normalization(
    x: Any, mean: Any, variance: Any, axis: int, offset: Any = None, scale: Any = None, epsilon: float = 0.001
) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset along an axis, with statistics that are given."""
    op = BatchNorm(epsilon, scale=scale is not None, center=offset is not None, frozen=True)
    vectors = [as_operand(v) for v in (scale, offset, mean, variance) if v is not None]
    return with_axis_last(lambda moved: op(moved, *vectors), as_float(x), axis)


def layer_normalization(
    x: Any, gamma: Any = None, beta: Any = None, axis: Any = -1, epsilon: float | None = None, **kwargs: Any
) -> Any:
    """Normalization over an axis or several, gamma and beta of their extents; epsilon: None for that of config."""
    if kwargs.pop("rms_scaling", False) or kwargs:
        raise ValueError(
            f"layer_normalization: expected no further arguments, got {', '.join(kwargs) or 'rms_scaling'}"
        )
    epsilon = config.epsilon() if epsilon is None else epsilon
    x, weights = as_float(x), [as_operand(v) for v in (gamma, beta) if v is not None]
    axes = normalize_axes("layer_normalization", axis if isinstance(axis, int) else tuple(axis), len(x.shape))
    kind: dict[str, Any] = {"epsilon": epsilon, "scale": gamma is not None, "center": beta is not None}
    there = (*(i for i in range(len(x.shape)) if i not in axes), *sorted(axes))
    if there == tuple(range(len(x.shape))):
        return LayerNorm(axis if isinstance(axis, int) else tuple(axis), **kind)(x, *weights)
    moved = transpose(x, there)
    weights = [reshape(w, moved.shape[-len(axes) :]) for w in weights]
    y = LayerNorm(tuple(range(-len(axes), 0)), **kind)(moved, *weights)
    return transpose(y, tuple(there.index(i) for i in range(len(there))))
