"""Resizing of images of bytes with antialiasing, as Pillow does it: each pixel is a sum of those that it covers."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from pydtconv._ext import image

#: (top, left, bottom, right) of a part of an image, in pixels
Box = tuple[float, float, float, float]


def _cubic(x: np.ndarray) -> np.ndarray:
    return np.where(x < 1, (1.5 * x - 2.5) * x * x + 1, ((2.5 - 0.5 * x) * x - 4) * x + 2)


#: the weight of a pixel by its distance, and the distance from which it is 0
_FILTERS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "bilinear": (lambda x: 1 - x, 1),
    "bicubic": (_cubic, 2),
    "lanczos": (lambda x: np.sinc(x) * np.sinc(x / 3), 3),
}


def resize(x: np.ndarray, out: np.ndarray, interpolation: str, box: Box) -> None:
    """x (height, width, channels) to out (rows, columns, channels), both uint8; channels is 1 to 4.

    interpolation: "nearest", "bilinear", "bicubic" or "lanczos".  box: the part of x that is taken, black where it is
    beyond x.  `PIL.Image.resize` rounds to bytes between columns and rows, too: with "bilinear" its values differ by 1
    at most.
    """
    top, left, bottom, right = box
    rows = _band(x.shape[0], out.shape[0], top, bottom, interpolation)
    columns = _band(x.shape[1], out.shape[1], left, right, interpolation)
    workspace = np.empty(image.bands_of_bytes_workspace(columns, x.shape[2]) // 4, np.float32)
    image.bands_of_bytes(rows, columns, x, out, workspace)


@lru_cache(maxsize=256)
def _band(extent: int, size: int, first: float, last: float, interpolation: str) -> image.Band:
    """The matrix (size, extent) that resizes the part from first to last."""
    scale = (last - first) / size
    centre = first + (np.arange(size) + 0.5) * scale
    if interpolation == "nearest":
        inside = (centre >= 0) & (centre < extent)
        starts = np.clip(centre.astype(np.int64), 0, extent - 1)
        return image.Band(extent, inside[:, None].astype(np.float32), starts, np.ones(size, np.int64), (0, 0))
    starts, counts, weights = _weights(interpolation, centre, scale, 0, extent)
    low, high = min(round(first), 0), max(round(last), extent)
    padded = weights if (low, high) == (0, extent) else _weights(interpolation, centre, scale, low, high)[2]
    weights /= padded.sum(1, keepdims=True)
    return image.Band(extent, weights.astype(np.float32), starts, counts, (0, 0))


def _weights(
    interpolation: str, centre: np.ndarray, scale: float, low: int, high: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first of the pixels from low to high that count for each centre, how many, and their weights."""
    weight, reach = _FILTERS[interpolation]
    stretch = max(scale, 1.0)
    starts = np.clip(np.floor(centre - reach * stretch + 0.5).astype(np.int64), low, high - 1)
    ends = np.minimum(np.floor(centre + reach * stretch + 0.5).astype(np.int64), high)
    counts = np.maximum(ends - starts, 1)
    places = np.arange(counts.max())
    distance = np.abs(starts[:, None] + places + 0.5 - centre[:, None]) / stretch
    return starts, counts, np.where((places < counts[:, None]) & (distance < reach), weight(distance), 0)
