"""Arrays sampled at places between their elements (cext/image/places.c)."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

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


def _fixed(index: np.ndarray, extent: int, mode: str) -> np.ndarray:
    """Indices outside as those inside that the mode puts in their place."""
    if mode == "wrap":
        return index % extent
    if mode == "mirror":
        last = extent - 1
        return np.abs((index + last) % (2 * last) - last) if last else np.zeros_like(index)
    if mode == "reflect":
        last = 2 * extent
        return (np.abs((2 * index + 1 + last) % (2 * last) - last) - 1) // 2
    return np.clip(index, 0, extent - 1)


def corners(coordinates: Any, extents: tuple[int, ...], order: int, mode: str) -> Any:
    """(indices, weight, whether inside) of each of the points that a sample is made of."""
    choices = []
    for coordinate, extent in zip(coordinates, extents, strict=True):
        if order == 0:
            parts = [(np.round(coordinate).astype(np.int64), np.ones_like(coordinate))]
        else:
            low = np.floor(coordinate)
            share = coordinate - low
            parts = [(low.astype(np.int64), 1 - share), (low.astype(np.int64) + 1, share)]
        choices.append(
            [(_fixed(i, extent, mode), w, (i >= 0) & (i < extent) if mode == "constant" else None) for i, w in parts]
        )
    for corner in itertools.product(*choices):
        indices, weights, insides = zip(*corner, strict=True)
        inside = None if mode != "constant" else functools.reduce(np.logical_and, insides)
        yield indices, math.prod(weights[1:], start=weights[0]), inside


def spread(dx: np.ndarray, coordinates: np.ndarray, dy: np.ndarray, order: int, fill_mode: str) -> None:
    """The gradient of `sample` by x, added to dx.  Sums are doubles, in the order of the places."""
    rank = len(coordinates)
    extents, inner = dx.shape[:rank], math.prod(dx.shape[rank:])
    if not dx.size:
        return
    for indices, weight, inside in corners(np.asarray(coordinates, "float64"), extents, order, fill_mode):
        weight = weight if inside is None else weight * inside
        weight = weight.reshape(weight.shape + (1,) * (dx.ndim - rank))
        terms = np.where(weight == 0, 0, weight * dy)
        at = np.ravel_multi_index(indices, extents, mode="clip")[..., None] * inner + np.arange(inner)
        dx += np.bincount(at.reshape(-1), terms.reshape(-1), dx.size).reshape(dx.shape)
