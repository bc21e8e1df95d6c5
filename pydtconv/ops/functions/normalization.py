"""Normalization."""

from __future__ import annotations

from typing import Any

from pydtconv import config
from pydtconv.ops.functions.operands import as_operand
from pydtconv.ops.functions.shape import with_axis_last
from pydtconv.ops.layer_normalization import LayerNorm
from pydtconv.ops.normalization import BatchNorm

__all__ = ["batch_normalization", "layer_normalization"]


def batch_normalization(
    x: Any, mean: Any, variance: Any, axis: int, offset: Any = None, scale: Any = None, epsilon: float = 0.001
) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset along an axis, with statistics that are given."""
    op = BatchNorm(epsilon, scale=scale is not None, center=offset is not None, frozen=True)
    vectors = [as_operand(v) for v in (scale, offset, mean, variance) if v is not None]
    return with_axis_last(lambda moved: op(moved, *vectors), as_operand(x), axis)


def layer_normalization(
    x: Any, gamma: Any = None, beta: Any = None, axis: Any = -1, epsilon: float | None = None, **kwargs: Any
) -> Any:
    """Normalization of each sample over the last axis or axes; epsilon: None for that of config."""
    if kwargs.pop("rms_scaling", False) or kwargs:
        raise ValueError(
            f"layer_normalization: expected no further arguments, got {', '.join(kwargs) or 'rms_scaling'}"
        )
    epsilon = config.epsilon() if epsilon is None else epsilon
    axis = axis if isinstance(axis, int) else tuple(axis)
    op = LayerNorm(axis, epsilon, scale=gamma is not None, center=beta is not None)
    return op(as_operand(x), *(as_operand(v) for v in (gamma, beta) if v is not None))
