"""What functions of images share: where the axes are, batches of one image, kinds of interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.ops.functions.operands import as_operand, is_symbolic
from pydtconv.ops.functions.shape import expand_dims, squeeze, transpose

_ORDERS = {"nearest": 0, "bilinear": 1}


def channels_are_last(data_format: str | None) -> bool:
    data_format = config.image_data_format() if data_format is None else data_format
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"data_format: expected 'channels_last' or 'channels_first', got {data_format!r}")
    return data_format == "channels_last"


def axes_of(name: str, x: Any, data_format: str | None, rank: int = 2) -> tuple[int, ...]:
    """The axes of rows and columns."""
    if len(x.shape) not in (rank + 1, rank + 2):
        raise ValueError(f"{name}: expected {rank + 1} or {rank + 2} dimensions, got shape {tuple(x.shape)}")
    first = len(x.shape) - rank - (1 if channels_are_last(data_format) else 0)
    return tuple(range(first, first + rank))


def on_batches(name: str, x: Any, data_format: str | None, function: Callable[[Any], Any]) -> Any:
    """function of images (n, h, w, c)."""
    x = as_operand(x) if is_symbolic(x) else np.asarray(x)
    axes_of(name, x, data_format)
    single, last = len(x.shape) == 3, channels_are_last(data_format)
    x = expand_dims(x, 0) if single else x
    y = function(x if last else transpose(x, (0, 2, 3, 1)))
    y = y if last else transpose(y, (0, 3, 1, 2))
    return squeeze(y, 0) if single else y


def order_of(name: str, interpolation: str) -> int:
    if interpolation not in _ORDERS:
        raise ValueError(f"{name}: interpolation: expected one of {', '.join(_ORDERS)}, got {interpolation!r}")
    return _ORDERS[interpolation]
