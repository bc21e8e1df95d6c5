"""Pooling."""

from __future__ import annotations

from typing import Any

from pydtconv.ops.functions.operands import as_operand, as_padding
from pydtconv.ops.functions.shape import with_channels_last
from pydtconv.ops.parts import exported
from pydtconv.ops.pooling import AdaptiveAveragePool, AdaptiveMaxPool, AdaptivePool, AveragePool, MaxPool, Padding

__all__ = exported(nn="adaptive_average_pool adaptive_max_pool average_pool max_pool")


def _sizes(name: str, value: Any, rank: int) -> tuple[int, ...]:
    sizes = (value,) if isinstance(value, int) else tuple(value)
    if len(sizes) == 1:
        sizes *= rank
    if len(sizes) != rank:
        raise ValueError(f"{name}: expected one integer or {rank}, got {value!r}")
    return sizes


def _pool(op: type[MaxPool] | type[AveragePool], x: Any, size: Any, strides: Any, padding: Padding, form: Any) -> Any:
    x = as_operand(x)
    rank = len(x.shape) - 2
    if not 1 <= rank <= 3:
        raise ValueError(f"inputs: expected three to five dimensions, got shape {tuple(x.shape)}")
    strides = None if strides is None else _sizes("strides", strides, rank)
    return with_channels_last(op(_sizes("pool_size", size, rank), strides, as_padding(padding)), x, form)


def max_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: Padding = "valid", data_format: str | None = None
) -> Any:
    """Maximum over windows of an image of one to three axes."""
    return _pool(MaxPool, inputs, pool_size, strides, padding, data_format)


def average_pool(
    inputs: Any, pool_size: Any, strides: Any = None, padding: Padding = "valid", data_format: str | None = None
) -> Any:
    """Mean over windows of an image of one to three axes; padding does not count."""
    return _pool(AveragePool, inputs, pool_size, strides, padding, data_format)


def _adaptive(op: type[AdaptivePool], x: Any, size: Any, form: Any) -> Any:
    x = as_operand(x)
    return with_channels_last(op(_sizes("output_size", size, len(x.shape) - 2)), x, form)


def adaptive_max_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Any:
    """Maximum over as many windows of an image of one to three axes as output_size says."""
    return _adaptive(AdaptiveMaxPool, inputs, output_size, data_format)


def adaptive_average_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Any:
    """Mean over as many windows of an image of one to three axes as output_size says."""
    return _adaptive(AdaptiveAveragePool, inputs, output_size, data_format)
