"""Changes of images that move pixels, by which masks and boxes move, too: more rows of augment.py's table."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.images import steps
from pydtconv.images.steps import ORDERS, Steps, step
from pydtconv.ops.augment import Change, Generators, Numbers, chosen, draws, enter, signs
from pydtconv.ops.functions.tables import image_geometry


def _affine(shape: Any, rows: list[Any], interpolation: str, fill_mode: str, fill_value: float) -> Steps:
    columns = [np.broadcast_to(np.asarray(row, float), shape[:1]) for row in (*rows, 0, 0)]
    return steps.affine(shape[0], np.stack(columns, 1), ORDERS[interpolation], fill_mode, fill_value)


def _angles(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    """angle: (n,), in degrees."""
    return {"angle": draws(rngs, *factor) * 360}


def _rotated(shape: Any, numbers: Numbers, factor: Any, **filling: Any) -> Steps:
    angle = numbers["angle"] * (math.pi / 180)
    cosine, sine, right, bottom = np.cos(angle), np.sin(angle), shape[2] - 1, shape[1] - 1
    across = (right - (cosine * right - sine * bottom)) / 2
    down = (bottom - (sine * right + cosine * bottom)) / 2
    return _affine(shape, [cosine, -sine, across, sine, cosine, down], **filling)


def _ways(shape: Any, rngs: Generators, height: Any, width: Any, **_: Any) -> Numbers:
    """translations: (n, 2), pixels along x and y."""
    down, across = draws(rngs, *height) * shape[1], draws(rngs, *width) * shape[2]
    return {"translations": np.stack([across, down], 1)}


def _translated(shape: Any, numbers: Numbers, height: Any, width: Any, **filling: Any) -> Steps:
    across, down = numbers["translations"].T
    return _affine(shape, [1, 0, -across, 0, 1, -down], **filling)


def _zooms(shape: Any, rngs: Generators, height: Any, width: Any, **_: Any) -> Numbers:
    """Each (n, 1): extents of what is seen as shares of the image's."""
    down = 1 + draws(rngs, *height)
    across = down if width is None else 1 + draws(rngs, *width)
    return {"height_zoom": down[:, None], "width_zoom": across[:, None]}


def _zoomed(shape: Any, numbers: Numbers, height: Any, width: Any, **filling: Any) -> Steps:
    across, down = numbers["width_zoom"][:, 0], numbers["height_zoom"][:, 0]
    left, top = (shape[2] - 1) / 2 * (1 - across), (shape[1] - 1) / 2 * (1 - down)
    return _affine(shape, [across, 0, left, 0, down, top], **filling)


def _shears(shape: Any, rngs: Generators, x_factor: Any, y_factor: Any, **_: Any) -> Numbers:
    """shear_factor: (n, 2), along x and y."""
    sign = signs(rngs)
    across, down = sign * draws(rngs, *x_factor), sign * draws(rngs, *y_factor)
    return {"shear_factor": np.stack([across, down], 1)}


def _sheared(shape: Any, numbers: Numbers, x_factor: Any, y_factor: Any, **filling: Any) -> Steps:
    across, down = numbers["shear_factor"].T
    return _affine(shape, [1, across, 0, down, 1, 0], **filling)


def _views(shape: Any, rngs: Generators, factor: Any, scale: float, **_: Any) -> Numbers:
    """Corners (n, 4, 2), moved by up to half of scale of their distance from the first one."""
    right, bottom = shape[2] - 1, shape[1] - 1
    apply = chosen(rngs, factor)
    start = np.array([[[0, 0], [right, 0], [0, bottom], [right, bottom]]] * len(rngs), np.float64)
    moves = [rng.uniform(-0.5 * scale, 0.5 * scale, (4, 2)) for rng in rngs]
    return {"apply_perspective": apply, "start_points": start, "end_points": start * (1 + np.stack(moves))}


def _viewed(shape: Any, numbers: Numbers, interpolation: str, fill_value: float, **_: Any) -> Steps:
    apply = np.broadcast_to(np.asarray(numbers["apply_perspective"], bool), shape[:1])
    start, end = (np.broadcast_to(numbers[name], (shape[0], 4, 2))[apply] for name in ("start_points", "end_points"))
    transforms = np.zeros((shape[0], 8))
    transforms[apply] = image_geometry.homography(start, end).astype("float32")
    return steps.affine(shape[0], transforms, ORDERS[interpolation], "constant", fill_value, where=apply)


def _view_columns(numbers: Numbers, **_: Any) -> np.ndarray:
    """(n, 10): whether to, and the projective transform of an image's places to those after it, by rows."""
    apply = np.asarray(numbers["apply_perspective"], bool)
    found = np.zeros((len(apply), 10))
    found[:, 0], found[:, 1::4] = apply, 1
    if apply.any():
        back = image_geometry.homography(numbers["start_points"][apply], numbers["end_points"][apply])
        matrices = np.concatenate([back, np.ones((len(back), 1))], 1).reshape(-1, 3, 3)
        found[apply, 1:] = np.linalg.inv(matrices).reshape(-1, 9)
    return found


def _distortions(shape: Any, rngs: Generators, factor: Any, scale: Any, **_: Any) -> Numbers:
    """seed: of the noise of each image."""
    numbers = {"apply_transform": chosen(rngs, factor), "distortion_factor": draws(rngs, *scale)}
    return {**numbers, "seed": np.array([rng.integers(2**63) for rng in rngs])}


def _distorted(
    shape: Any, numbers: Numbers, factor: Any, scale: Any, value_range: Any, interpolation: str, **filling: Any
) -> Steps:
    n, h, w, _ = shape
    apply, amounts, seeds = (
        np.broadcast_to(numbers[name], (n,)) for name in ("apply_transform", "distortion_factor", "seed")
    )
    coordinates: list[Any] = [None] * n
    apply = apply & (amounts > 0)
    for i in np.flatnonzero(apply):
        rng = np.random.Generator(np.random.Philox(key=int(seeds[i])))
        coordinates[i] = image_geometry.elastic_places(
            h, w, rng, max(h, w) * 0.1 * amounts[i], min(h, w) * 0.05 * amounts[i]
        )
    moved = steps.places(coordinates, ORDERS[interpolation], **filling)
    return steps.in_turn([moved, step("add", n, 0, *value_range, where=apply)])


def _moving(
    draw: Callable[..., Numbers], move: Callable[..., Steps], columns: Callable[..., np.ndarray] | None
) -> Change:
    """A change that moves masks as it moves images, to the nearest pixels."""

    def masks(shape: Any, numbers: Numbers, **settings: Any) -> Steps:
        return move(shape, numbers, **{**settings, "interpolation": "nearest"})

    return Change(draw, move, masks, columns)


enter(
    {
        "elastic": _moving(_distortions, _distorted, None),
        "perspective": _moving(_views, _viewed, _view_columns),
        "rotation": _moving(_angles, _rotated, lambda numbers, **_: numbers["angle"][:, None]),
        "shear": _moving(_shears, _sheared, lambda numbers, **_: numbers["shear_factor"]),
        "translation": _moving(_ways, _translated, lambda numbers, **_: numbers["translations"]),
        "zoom": _moving(
            _zooms, _zoomed, lambda numbers, **_: np.concatenate([numbers["width_zoom"], numbers["height_zoom"]], 1)
        ),
    }
)
