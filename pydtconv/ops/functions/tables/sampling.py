"""What functions of images are made of: sampling at coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.images.places import sample, spread
from pydtconv.images.steps import affine, change, check_filling, places_of
from pydtconv.ops.functions.operands import is_watched
from pydtconv.ops.functions.tables.function_of_row import Row, functions_of
from pydtconv.ops.table_op import Backward, Rule, sloped, unbroadcast

Shape = tuple[int, ...]


def _map_shape(x: Shape, coordinates: Shape, order: int, fill_mode: str, fill_value: float) -> Shape:
    check_filling("map_coordinates", order, fill_mode)
    if coordinates[:1] != (len(x),):
        raise ValueError(f"map_coordinates: coordinates: expected ({len(x)}, ...), got shape {tuple(coordinates)}")
    return coordinates[1:]


def _map(x: np.ndarray, coordinates: np.ndarray, order: int, fill_mode: str, fill_value: float) -> np.ndarray:
    _map_shape(x.shape, coordinates.shape, order, fill_mode, fill_value)
    return sample(x, coordinates, order, fill_mode, fill_value)


def _slopes(x: np.ndarray, places: np.ndarray, order: int, fill_mode: str, fill_value: float) -> np.ndarray:
    """The derivatives of `sample` by each coordinate, (rank, ...)."""
    slopes = []
    for axis in range(len(places)):
        moved = [np.array(places, "float64") for _ in range(2)]
        low = np.floor(moved[0][axis])
        moved[0][axis], moved[1][axis] = low, low + 1
        ends = [sample(x.astype("float64"), points, order, fill_mode, fill_value) for points in moved]
        slopes.append((ends[1] - ends[0]) * (order > 0))
    return np.stack(slopes)


def _map_gradient(b: Backward, order: int, fill_mode: str, fill_value: float) -> Any:
    dx = np.zeros(b.shapes[0], b.dy[0].dtype)
    spread(dx, b.x[1], b.dy[0], order, fill_mode)
    return dx, sloped(_slopes(b.x[0], b.x[1], order, fill_mode, fill_value), b.dy[0])


def transformed(
    images: np.ndarray, transforms: np.ndarray, order: int, fill_mode: str, fill_value: float
) -> np.ndarray:
    """Images (n, h, w, c) sampled where transforms (n or 1, 8) say."""
    x = images if images.dtype in ("float32", "float64") else images.astype("float64")
    y = change(x, affine(len(x), transforms, order, fill_mode, fill_value))
    return np.round(y) if images.dtype.kind in "iu" else y


def _transformed_gradient(b: Backward, order: int, fill_mode: str, fill_value: float) -> Any:
    grid = np.broadcast_to(places_of(b.shapes[0], b.x[1]), (b.shapes[0][0], 2, *b.shapes[0][1:3]))
    dx = np.zeros(b.shapes[0], b.dy[0].dtype)
    for i, coordinates in enumerate(grid):
        spread(dx[i], coordinates, b.dy[0][i], order, fill_mode)
    return dx, None


def _transformed_by_gradient(b: Backward, order: int, fill_mode: str, fill_value: float) -> Any:
    """With that by the transforms: the slopes by the places, and the places by the eight numbers."""
    images, transforms = b.x
    n, h, w, _ = images.shape
    grid = np.broadcast_to(places_of(images.shape, transforms), (n, 2, h, w))
    moved = [_slopes(x, c, order, fill_mode, fill_value) for x, c in zip(images, grid, strict=True)]
    by_places = sloped(np.stack(moved), b.dy[0][:, None]).sum(-1)
    y, x = np.meshgrid(np.arange(h, dtype="float64"), np.arange(w, dtype="float64"), indexing="ij")
    below = transforms[:, 6, None, None] * x + transforms[:, 7, None, None] * y + 1
    down, across = by_places[:, 0] / below, by_places[:, 1] / below
    along = -(down * grid[:, 0] + across * grid[:, 1])
    parts = (across * x, across * y, across, down * x, down * y, down, along * x, along * y)
    slopes = np.stack([part.sum((1, 2)) for part in parts], -1)
    return _transformed_gradient(b, order, fill_mode, fill_value)[0], unbroadcast(slopes, transforms.shape)


ROWS: list[Row] = [
    (
        "map_coordinates(inputs, coordinates, order, fill_mode='constant', fill_value=0)",
        "Values at coordinates between elements; order 0: of the nearest, 1: linear.",
        Rule(_map, _map_gradient, _map_shape, "first"),
    ),
    (
        "_transform(images, transforms, order, fill_mode, fill_value)",
        "Images (n, h, w, c) under projective transforms.",
        Rule(transformed, _transformed_gradient, lambda x, t, **static: x, "first", linear=(0,)),
    ),
    (
        "_transform_by(images, transforms, order, fill_mode, fill_value)",
        "The same, with a gradient by the transforms.",
        Rule(transformed, _transformed_by_gradient, lambda x, t, **static: x, "first"),
    ),
]
_FUNCTIONS = functions_of(__name__, ROWS, {"map_coordinates": 2, "_transform": 2, "_transform_by": 2})
map_coordinates = _FUNCTIONS["map_coordinates"]


def transform(images: Any, transforms: Any, order: int, fill_mode: str, fill_value: float) -> Any:
    """Images (n, h, w, c) under projective transforms (n or 1, 8)."""
    name = "_transform" if isinstance(transforms, np.ndarray) and not is_watched(transforms) else "_transform_by"
    return _FUNCTIONS[name](images, transforms, order, fill_mode, fill_value)
