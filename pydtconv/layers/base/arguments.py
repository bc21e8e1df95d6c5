"""Checks of the arguments that many layers have."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import config, ops
from pydtconv.extents import check


def integers(layer: str, name: str, value: Any, count: int, allow_zero: bool = False) -> Any:
    """value as `count` integers: one integer stands for all.  Raises ValueError otherwise."""
    parts = (value,) * count if is_integer(value) else value
    least = 0 if allow_zero else 1
    if (
        not isinstance(parts, (list, tuple, np.ndarray))
        or len(parts) != count
        or not all(is_integer(part) and part >= least for part in parts)
    ):
        many = "an integer" if count == 1 else f"an integer or {count} integers"
        raise ValueError(f"{layer}: {name}: expected {many} of {least} or more, got {value!r}")
    check(f"{layer}: {name}", found := tuple(int(part) for part in parts))
    return found


def given(names: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the constructor whose `locals()` these are, but for self: for the constructor of its base."""
    rest = names["kwargs"]
    return {name: value for name, value in names.items() if name not in ("self", "kwargs", "__class__")} | rest


def is_integer(value: Any) -> bool:
    """Whether it is a Python or NumPy integer, no truth value."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def sides(layer: str, name: str, value: Any, rank: int = 2) -> tuple[tuple[int, int], ...]:
    """value as (before, after) of each axis: an integer, one for each axis, or a pair for each.

    Of one axis a pair is (before, after).
    """
    if is_integer(value):
        value = ((value, value),) * rank
    if rank == 1 and isinstance(value, (list, tuple, np.ndarray)) and len(value) == 2:
        value = (value,)
    single = rank == 1 and isinstance(value, (list, tuple)) and all(map(is_integer, value)) and len(value) == 1
    if not isinstance(value, (list, tuple, np.ndarray)) or len(value) != rank or single:
        many = "2 integers" if rank == 1 else f"{rank} integers or {rank} pairs of integers"
        raise ValueError(f"{layer}: {name}: expected an integer, {many}, got {value!r}")
    pairs = (integers(layer, name, side, 2, allow_zero=True) for side in value)
    return tuple((before, after) for before, after in pairs)


def format_of(layer: str, data_format: str | None) -> str:
    """data_format, or the process's default for None."""
    data_format = config.image_data_format() if data_format is None else data_format
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"{layer}: data_format: expected 'channels_last' or 'channels_first', got {data_format!r}")
    return data_format


def choice(layer: str, name: str, value: Any, choices: tuple[str, ...]) -> str:
    """value in lower case, which must be one of choices."""
    text = value.lower() if isinstance(value, str) else value
    if text not in choices:
        raise ValueError(f"{layer}: {name}: expected {' or '.join(map(repr, choices))}, got {value!r}")
    return text


def positive(layer: str, name: str, value: Any) -> int:
    """value, an integer of 1 or more."""
    return integers(layer, name, value, 1)[0]


def to_channels_last(x: Any, data_format: str) -> Any:
    """x of rank n in (n, c, spatial...) or (n, spatial..., c) as the latter."""
    return x if data_format == "channels_last" else ops.transpose(x, (0, *range(2, len(x.shape)), 1))


def from_channels_last(y: Any, data_format: str) -> Any:
    """The reverse of to_channels_last."""
    return y if data_format == "channels_last" else ops.transpose(y, (0, len(y.shape) - 1, *range(1, len(y.shape) - 1)))


def channel_axis(data_format: str) -> int:
    return -1 if data_format == "channels_last" else 1


def channels(layer: Any, input_shape: Any, data_format: str) -> int:
    """The number of channels in input_shape.  Raises ValueError when it is not known."""
    count = input_shape[channel_axis(data_format)]
    if count is None:
        raise ValueError(
            f"{type(layer).__name__} {layer.name!r}: the channels of the input must be known, got shape "
            f"{tuple(input_shape)} with data_format={data_format!r}"
        )
    return count


def refuse(kind: str, **given: Any) -> None:
    """Raises NotImplementedError that names the first argument of Keras that is given and not supported here."""
    for name, value in given.items():
        if value is not None:
            raise NotImplementedError(f"{kind}: {name}: expected None, got {value!r}: it is not supported")
