"""Contrast-limited adaptive histogram equalization; Zuiderveld, Graphics Gems IV (1994)."""

from __future__ import annotations

import numpy as np

#: levels of a histogram
_LEVELS = 256


def clahe(
    x: np.ndarray, value_range: tuple[float, float], clip_limit: float, tile_grid_size: tuple[int, int]
) -> np.ndarray:
    """Images (n, h, w, c), each channel equalized by the histograms of its tiles.

    A pixel's new value is interpolated between the tables of the four tiles whose centres surround it.  Tiles that go
    past the image are filled by reflection.  clip_limit: how often a level may occur in a tile, as a multiple of the
    mean; what is above is spread over all levels; 0 for no limit.  (Keras on PyTorch rounds the limit down, and fills
    by the last row and column.)
    """
    first, last = value_range
    (n, h, w, c), (rows, columns) = x.shape, tile_grid_size
    tile_h, tile_w = -(-h // rows), -(-w // columns)
    levels = np.clip(((x - first) / (last - first) * 255).astype(np.int32), 0, _LEVELS - 1)
    borders = (0, 0), (0, tile_h * rows - h), (0, tile_w * columns - w), (0, 0)
    tiles = np.pad(levels, borders, "symmetric").reshape(n, rows, tile_h, columns, tile_w, c)
    tables = _tables(tiles.transpose(0, 5, 1, 3, 2, 4).reshape(n, c, rows, columns, -1), clip_limit)
    y = np.zeros(x.shape, x.dtype)
    for row, share_h in _neighbours(h, tile_h, rows):
        for column, share_w in _neighbours(w, tile_w, columns):
            places = np.ogrid[:n, :h, :w, :c]
            found = tables[places[0], places[3], row[:, None, None], column[:, None], levels]
            y += found * (share_h[:, None, None] * share_w[:, None])
    return y * ((last - first) / 255) + first


def _tables(tiles: np.ndarray, clip_limit: float) -> np.ndarray:
    """The new value (0 to 255) of each level, (..., 256), of tiles of levels (..., pixels)."""
    outer, pixels = tiles.shape[:-1], tiles.shape[-1]
    flat = tiles.reshape(-1, pixels)
    places = flat + _LEVELS * np.arange(len(flat))[:, None]
    counts = np.bincount(places.reshape(-1), minlength=_LEVELS * len(flat)).reshape(-1, _LEVELS).astype("float32")
    if clip_limit > 0:
        kept = np.minimum(counts, np.float32(clip_limit * pixels / _LEVELS))
        counts = kept + (counts - kept).sum(-1, keepdims=True) / _LEVELS
    sums = np.cumsum(counts, -1)
    least = sums[:, :1]
    room = np.where(least == pixels, 1, pixels - least)
    return np.clip((sums - least) * 255 / room, 0, 255).reshape(*outer, _LEVELS)


def _neighbours(extent: int, tile: int, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each pixel of an axis the tile before it and the tile behind it, each with its share."""
    place = (np.arange(extent, dtype="float32") - tile / 2) / tile
    before = np.floor(place).astype(np.int64)
    behind = (place - before).astype("float32")
    return [(np.clip(before, 0, count - 1), 1 - behind), (np.clip(before + 1, 0, count - 1), behind)]
