"""Gradients of convolutions as convolutions, which can be differentiated again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydtconv.ops.base import functions


def sides(p: Any) -> tuple[tuple[int, int], ...]:
    """Padding before and after each axis of images."""
    return tuple((before, after) for *_, before, after in p.axes[3 - p.rank :])


def by_groups(groups: int, function: Any, *operands: Any) -> Any:
    """function of each group of the last axis of the operands, joined along the last axis."""
    if groups == 1:
        return function(*operands)
    parts = zip(*(functions.split(each, groups, axis=-1) for each in operands), strict=True)
    return functions.concatenate([function(*part) for part in parts], axis=-1)


def of_filters(convolve: Any, kernel: Sequence[int], images: Any, dy: Any) -> Any:
    """A convolution itself: samples are channels, dy is the filters, and strides and dilation change places."""
    rank = len(kernel)
    order = (rank + 1, *range(1, rank + 1), 0)
    back = (*range(1, rank + 1), 0, rank + 1)
    found = convolve(functions.transpose(images, order), functions.transpose(dy, back))
    found = found[(slice(None), *(slice(0, size) for size in kernel))]
    return functions.transpose(found, back)
