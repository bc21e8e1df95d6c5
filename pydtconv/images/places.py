"""Arrays sampled at places between their elements (cext/image/places.c)."""

from __future__ import annotations

import numpy as np

from pydtconv._ext import image
from pydtconv.images.steps import FILL_MODES


def sample(x: np.ndarray, coordinates: np.ndarray, order: int, fill_mode: str, fill_value: float) -> np.ndarray:
    """Values of x at coordinates (rank, ...) between its elements; x may have further axes behind.

    order: 0 the nearest element, 1 linear.  Those of integers are rounded floats.
    """
    reals = np.ascontiguousarray(x, x.dtype if x.dtype in ("float32", "float64") else "float64")
    rank, inner = len(coordinates), x.shape[len(coordinates) :]
    y = np.empty((*coordinates.shape[1:], *inner), reals.dtype)
    if y.size:
        extents = np.array(x.shape[:rank], np.int64)
        places = np.ascontiguousarray(coordinates, "float64").reshape(-1)
        image.sample_places(
            extents, order, FILL_MODES.index(fill_mode), fill_value, places, reals.reshape(-1), y.reshape(-1)
        )
    return np.round(y) if x.dtype.kind in "iu" else y
