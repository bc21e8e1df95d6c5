"""The largest sizes: what is larger is refused before memory is taken for it, or anything is computed with it.

Within them, sums and products of sizes fit into 64 bits in C, and coordinates into 32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

#: the largest extent, the most elements of an array, the most products of a pass
LARGEST, MOST_ELEMENTS, MOST_PRODUCTS = 2**31 - 1, 2**50, 2**62


class SizeError(ValueError):
    """A shape has another number of elements than what is to have it.  size: that of the shape."""

    def __init__(self, message: str, size: int) -> None:
        super().__init__(message)
        self.size = size


def check(name: str, value: Any, least: int = -LARGEST) -> None:
    """Raises ValueError, which says `name`, where a number in value, or in its nested tuples, is no extent."""
    if isinstance(value, (tuple, list)):
        for item in value:
            check(name, item, least)
    elif isinstance(value, (int, np.integer)) and not least <= value <= LARGEST:
        bound = f"at most {LARGEST}" if value > LARGEST else f"{least} or more"
        raise ValueError(f"{name}: expected integers of {bound}, got {value}")


def check_elements(name: str, shape: Sequence[int | None]) -> None:
    """Raises ValueError where an array of this shape would have more than MOST_ELEMENTS; None counts as 1."""
    if math.prod([extent or 1 for extent in shape]) > MOST_ELEMENTS:
        raise ValueError(f"{name}: expected at most {MOST_ELEMENTS} elements, got shape {tuple(shape)}")


def check_products(name: str, count: int) -> None:
    """Raises ValueError where a pass would have more than MOST_PRODUCTS."""
    if count > MOST_PRODUCTS:
        raise ValueError(f"{name}: expected at most {MOST_PRODUCTS} products of a pass, got {count}")
