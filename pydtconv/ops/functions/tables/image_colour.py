"""Functions of the colours of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.dtypes import FLOATING, name_of, real
from pydtconv.ops.functions.arithmetic import abs, add, clip, divide, multiply, subtract
from pydtconv.ops.functions.operands import as_operand
from pydtconv.ops.functions.reduction import amax, amin
from pydtconv.ops.functions.reduction import sum as sum_over
from pydtconv.ops.functions.shape import cast, concatenate, get_item
from pydtconv.ops.functions.tables import elementwise
from pydtconv.ops.functions.tables.composed_shapes import copy, where
from pydtconv.ops.functions.tables.function_of_row import operands_of
from pydtconv.ops.functions.tables.image_axes import channels_are_last


def _parts(x: Any, axis: int) -> list[Any]:
    key = [slice(None)] * len(x.shape)
    found = []
    for i in range(3):
        key[axis] = slice(i, i + 1)
        found.append(get_item(x, tuple(key)))
    return found


def _channels(x: Any, data_format: str | None, counts: tuple[int, ...] = (3,)) -> int:
    axis = len(x.shape) - (1 if channels_are_last(data_format) else 3)
    if len(x.shape) not in (3, 4) or x.shape[axis] not in counts:
        raise ValueError(f"expected images of {' or '.join(map(str, counts))} channels, got shape {tuple(x.shape)}")
    return axis


def _colours(name: str, images: Any) -> Any:
    """Images of floats.  Raises ValueError for integers, whose range is not from 0 to 1."""
    (x,) = operands_of(images)
    if name_of(x.dtype) not in FLOATING:
        raise ValueError(f"{name}: expected images of floats, got {x.dtype}")
    return as_operand(x)


def rgb_to_grayscale(images: Any, data_format: str | None = None) -> Any:
    """The brightness of RGB images (ITU-R BT.601), one channel; images that have no more stay as they are."""
    (x,) = operands_of(images)
    dtype = name_of(x.dtype)
    axis = _channels(x, data_format, (1, 3))
    if x.shape[axis] == 1:
        return copy(x)
    x = x if dtype in FLOATING else cast(x, config.floatx())
    shape = [1] * len(x.shape)
    shape[axis] = 3
    weights = np.array([0.2989, 0.5870, 0.1140]).reshape(shape).astype(real(name_of(x.dtype)))
    y = sum_over(multiply(x, weights), axis, True)
    return y if dtype in FLOATING else cast(y, dtype)


def rgb_to_hsv(images: Any, data_format: str | None = None) -> Any:
    """Hue, saturation and value, each from 0 to 1, of RGB images of 0 to 1."""
    x = _colours("rgb_to_hsv", images)
    axis = _channels(x, data_format)
    r, g, b = _parts(x, axis)
    value = amax(x, axis, True)
    span = subtract(value, amin(x, axis, True))
    equal, positive = elementwise._FUNCTIONS["equal"], elementwise._FUNCTIONS["greater"]
    saturation = where(positive(value, 0.0), divide(span, where(positive(value, 0.0), value, 1.0)), 0.0)
    unit = divide(1 / 6, where(positive(span, 0.0), span, 1.0))
    hue = where(
        equal(r, value),
        multiply(unit, subtract(g, b)),
        where(
            equal(g, value),
            add(multiply(unit, subtract(b, r)), 2 / 6),
            add(multiply(unit, subtract(r, g)), 4 / 6),
        ),
    )
    hue = where(positive(span, 0.0), hue, 0.0)
    hue = where(elementwise._FUNCTIONS["less"](hue, 0.0), add(hue, 1.0), hue)
    return concatenate([hue, saturation, value], axis)


def hsv_to_rgb(images: Any, data_format: str | None = None) -> Any:
    """RGB images of 0 to 1 from hue, saturation and value."""
    x = _colours("hsv_to_rgb", images)
    axis = _channels(x, data_format)
    hue, saturation, value = _parts(x, axis)
    return concatenate(
        [
            multiply(
                value,
                add(multiply(saturation, subtract(_ramp(hue, shift), 1.0)), 1.0),
            )
            for shift in (1.0, 2 / 3, 1 / 3)
        ],
        axis,
    )


def _ramp(hue: Any, shift: float) -> Any:
    """0 to 1 by the distance of a colour's hue."""
    turned = elementwise._FUNCTIONS["mod"](add(hue, shift), 1.0)
    return clip(subtract(abs(subtract(multiply(turned, 6.0), 3.0)), 1.0), 0.0, 1.0)
