"""Pooling."""

from __future__ import annotations

from typing import Any

from pydtconv.ops.functions.operands import as_operand
from pydtconv.ops.functions.shape import with_channels_last
from pydtconv.ops.pooling import AveragePool, MaxPool, Padding

__all__ = ["average_pool", "max_pool"]


def _pair(name: str, value: Any) -> tuple[int, int]:
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) == 1:
        pair *= 2
    if len(pair) != 2:
        raise ValueError(f"{name}: expected one or two integers, got {value!r}")
    return pair


def _pool(op: type[MaxPool] | type[AveragePool], x: Any, size: Any, strides: Any, padding: Padding, form: Any) -> Any:
    node = op(_pair("pool_size", size), None if strides is None else _pair("strides", strides), padding)
    return with_channels_last(node, as_operand(x), form)


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
