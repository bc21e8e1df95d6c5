"""Where patches begin and end along one axis.

Output elements [o, p) of a window operator (kernel k, stride s, padding b before) need input elements
[o * s - b, (p - 1) * s - b + k).  Where a patch of the output begins at o, its input may begin anywhere between the
element that makes the first output of this patch, o * s - b, and the one behind the last window of the patch before,
(o - 1) * s - b + k: the input scheme I of an output scheme O.  What is then missing on either side is padding.
(T. Jin, S. Hong, "Split-CNN: Splitting Window-based Operations in Convolutional Neural Networks for Memory System
Optimization", 2019.)
"""

from __future__ import annotations

import random
from typing import Protocol

from pydtconv.ops.base import Window

#: where the patches of a tensor begin along an axis, the first at 0
Starts = tuple[int, ...]
#: elements [first, last) of an axis
Interval = tuple[int, int]


class Settings(Protocol):
    """What the pass asks of a `Split`."""

    @property
    def depth(self) -> float: ...
    @property
    def splits(self) -> tuple[int, int]: ...
    @property
    def stochastic(self) -> float: ...
    @property
    def exact(self) -> bool: ...
    @property
    def patches(self) -> int: ...
    @property
    def whole_statistics(self) -> bool: ...


def even(extent: int, count: int) -> Starts:
    """Borders of `count` patches of nearly equal extents.  Raises ValueError where there are fewer elements."""
    if count > extent:
        raise ValueError(f"split: expected at most {extent} patches along an axis of {extent} elements, got {count}")
    return tuple(round(i * extent / count) for i in range(count))


def drawn(extent: int, count: int, stochastic: float, rng: random.Random) -> Starts:
    """Borders that are up to `stochastic` of a patch away from the even ones; every patch has an element."""
    even(extent, count)
    starts = [round((i + rng.uniform(-stochastic, stochastic) * (i > 0)) * extent / count) for i in range(count)]
    for i in range(1, count):
        starts[i] = max(starts[i], starts[i - 1] + 1)
    for i in reversed(range(1, count)):
        starts[i] = min(starts[i], extent - (count - i))
    return tuple(starts)


def bounds(window: Window, start: int) -> Interval:
    """The least and the largest element at which the input of a patch may begin whose output begins at `start`.

    Where strides leave elements out between two windows, the patch before takes them.
    """
    first = start * window.stride - window.before
    return first, max((start - 1) * window.stride - window.before + window.reach, first)


def needed(window: Window, output: Interval) -> Interval:
    """The input elements that these output elements are made of; those outside of the image are padding."""
    first = output[0] * window.stride - window.before
    return first, (output[1] - 1) * window.stride - window.before + window.reach
