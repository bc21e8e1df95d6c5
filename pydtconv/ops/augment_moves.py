"""Changes of images that move pixels: what is drawn and what is done with it apart, so that masks and boxes follow.

`DRAWN[kind]` gives the numbers (n, k) of images, `MOVED[kind]` images moved by such numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.ops.augment import TRANSFORMS, Generators
from pydtconv.ops.functions.tables import image_geometry
from pydtconv.ops.functions.tables.sampling import transformed

_ORDERS = {"nearest": 0, "bilinear": 1}


def _draws(rngs: Generators, low: float, high: float) -> np.ndarray:
    return np.array([rng.uniform(low, high) for rng in rngs])


def _affine(x: np.ndarray, rows: list[Any], interpolation: str, fill_mode: str, fill_value: float) -> np.ndarray:
    columns = [np.broadcast_to(np.asarray(row, float), (len(x),)) for row in (*rows, 0, 0)]
    return transformed(x, np.stack(columns, 1), _ORDERS[interpolation], fill_mode, fill_value)


def _turns(shape: Any, rngs: Generators, factor: Any) -> np.ndarray:
    """(n, 1): shares of a full turn."""
    return _draws(rngs, *factor)[:, None]


def _rotated(x: np.ndarray, numbers: np.ndarray, **filling: Any) -> np.ndarray:
    angle = numbers[:, 0] * 2 * math.pi
    cosine, sine, right, bottom = np.cos(angle), np.sin(angle), x.shape[2] - 1, x.shape[1] - 1
    across = (right - (cosine * right - sine * bottom)) / 2
    down = (bottom - (sine * right + cosine * bottom)) / 2
    return _affine(x, [cosine, -sine, across, sine, cosine, down], **filling)


def _ways(shape: Any, rngs: Generators, height: Any, width: Any) -> np.ndarray:
    """(n, 2): pixels along x and y."""
    down, across = _draws(rngs, *height) * shape[1], _draws(rngs, *width) * shape[2]
    return np.stack([across, down], 1)


def _translated(x: np.ndarray, numbers: np.ndarray, **filling: Any) -> np.ndarray:
    return _affine(x, [1, 0, -numbers[:, 0], 0, 1, -numbers[:, 1]], **filling)


def _zooms(shape: Any, rngs: Generators, height: Any, width: Any) -> np.ndarray:
    """(n, 2): extents of what is seen as shares of the image's, along x and y."""
    down = 1 + _draws(rngs, *height)
    across = down if width is None else 1 + _draws(rngs, *width)
    return np.stack([across, down], 1)


def _zoomed(x: np.ndarray, numbers: np.ndarray, **filling: Any) -> np.ndarray:
    across, down = numbers.T
    left, top = (x.shape[2] - 1) / 2 * (1 - across), (x.shape[1] - 1) / 2 * (1 - down)
    return _affine(x, [across, 0, left, 0, down, top], **filling)


def _shears(shape: Any, rngs: Generators, x_factor: Any, y_factor: Any) -> np.ndarray:
    """(n, 2): along x and y."""
    sign = np.where(_draws(rngs, 0, 1) > 0.5, -1.0, 1.0)
    across, down = sign * _draws(rngs, *x_factor), sign * _draws(rngs, *y_factor)
    return np.stack([across, down], 1)


def _sheared(x: np.ndarray, numbers: np.ndarray, **filling: Any) -> np.ndarray:
    return _affine(x, [1, numbers[:, 0], 0, numbers[:, 1], 1, 0], **filling)


def _views(shape: Any, rngs: Generators, factor: Any, scale: float) -> np.ndarray:
    """(n, 10): whether to, and the projective transform of an image's places to those after it, by rows.

    The corners are moved by up to half of scale of their distance from the first one.
    """
    right, bottom = shape[2] - 1, shape[1] - 1
    corners = np.array([[0, 0], [right, 0], [0, bottom], [right, bottom]], np.float64)
    found = np.zeros((len(rngs), 10))
    found[:, 1::4] = 1
    for numbers, rng in zip(found, rngs, strict=True):
        if rng.random() < rng.uniform(*factor):
            ends = corners * (1 + rng.uniform(-0.5 * scale, 0.5 * scale, (4, 2)))
            back = np.append(image_geometry.homography(corners[None], ends[None])[0], 1).reshape(3, 3)
            numbers[0], numbers[1:] = 1, np.linalg.inv(back).reshape(-1)
    return found


def _viewed(x: np.ndarray, numbers: np.ndarray, interpolation: str, fill_value: float) -> np.ndarray:
    result = np.array(x)
    for i in np.flatnonzero(numbers[:, 0]):
        back = np.linalg.inv(numbers[i, 1:].reshape(3, 3))
        transform = (back / back[2, 2]).reshape(-1)[None, :8].astype("float32")
        result[i] = transformed(x[i : i + 1], transform, _ORDERS[interpolation], "constant", fill_value)[0]
    return result


#: by kind: the numbers of images of a shape, and what these do to images
DRAWN: dict[str, Callable[..., np.ndarray]] = {
    "perspective": _views,
    "rotation": _turns,
    "shear": _shears,
    "translation": _ways,
    "zoom": _zooms,
}
MOVED: dict[str, Callable[..., np.ndarray]] = {
    "perspective": _viewed,
    "rotation": _rotated,
    "shear": _sheared,
    "translation": _translated,
    "zoom": _zoomed,
}
_FILLING = ("interpolation", "fill_mode", "fill_value")


def drawn(kind: str, x: np.ndarray, rngs: Generators, settings: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
    """The numbers of images, and the settings by which places without a pixel are filled."""
    own = {key: value for key, value in settings.items() if key not in _FILLING}
    return DRAWN[kind](x.shape, rngs, **own), {key: settings[key] for key in _FILLING if key in settings}


def _row(kind: str) -> Callable[..., np.ndarray]:
    def transform(x: np.ndarray, rngs: Generators, **settings: Any) -> np.ndarray:
        numbers, filling = drawn(kind, x, rngs, settings)
        return MOVED[kind](x, numbers, **filling)

    return transform


TRANSFORMS.update({kind: _row(kind) for kind in DRAWN})
