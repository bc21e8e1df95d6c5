"""Ways of resizing that Keras does not have, and that TensorFlow has: by area, by a Gaussian, by Mitchell's filter."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


def _gaussian(x: np.ndarray) -> np.ndarray:
    return np.where(x < 1.5, np.exp(-2.0 * x * x), 0.0)  # a deviation of 1/2


def _mitchell(x: np.ndarray) -> np.ndarray:
    """The cubic of B = C = 1/3: Mitchell, Netravali, 1988."""
    inner, outer = (7 * x - 12) * x * x + 16 / 3, ((12 - 7 / 3 * x) * x - 20) * x + 32 / 3
    return np.where(x < 1, inner, np.where(x < 2, outer, 0.0)) / 6


#: filters by method: how far they reach, and their values at distances
FILTERS: dict[str, tuple[float, Callable[[np.ndarray], np.ndarray]]] = {
    "gaussian": (1.5, _gaussian),
    "mitchellcubic": (2.0, _mitchell),
}
METHODS = ("area", *FILTERS)


def weights(method: str, before: int, after: int, antialias: bool) -> np.ndarray:
    """What each of `before` pixels counts in each of `after`: (after, before), rows that add up to 1."""
    scale = before / after
    if method == "area":
        edges = np.arange(after + 1) * scale
        pixels = np.arange(before)
        shared = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
        return (np.maximum(shared, 0) / scale).astype("float32")
    reach, function = FILTERS[method]
    width = max(scale, 1.0) if antialias else 1.0
    middles = (np.arange(after) + 0.5) * scale
    distances = np.abs(np.arange(before) + 0.5 - middles[:, None])
    found = np.where(distances <= reach * width, function(distances / width), 0.0)
    total = found.sum(1, keepdims=True)
    return (found / np.where(np.abs(total) < math.ulp(1.0), 1.0, total)).astype("float32")
