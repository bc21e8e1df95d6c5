"""Images turned, shifted, sheared, zoomed: sampled at other places, with Keras's parameters."""

from __future__ import annotations

import math

import numpy as np

FILL_MODES = ("constant", "nearest", "reflect", "wrap")


def affine_matrix(
    h: int, w: int, theta: float = 0, tx: float = 0, ty: float = 0, shear: float = 0, zx: float = 1, zy: float = 1
) -> np.ndarray | None:
    """(2, 3): from a pixel (row, column) of the result to its place in the image; None where nothing changes.

    theta, shear: degrees.  tx, ty: rows and columns.  zx, zy: factors; above 1 the image gets smaller.
    """
    if (theta, tx, ty, shear, zx, zy) == (0, 0, 0, 0, 1, 1):
        return None
    turn, slant = math.radians(theta), math.radians(shear)
    # in the order (x, y), as Keras writes them; the axes are exchanged at the end
    rotation = np.array([[math.cos(turn), -math.sin(turn), 0], [math.sin(turn), math.cos(turn), 0], [0, 0, 1]])
    shift = np.array([[1, 0, tx], [0, 1, ty], [0, 0, 1]])
    shearing = np.array([[1, -math.sin(slant), 0], [0, math.cos(slant), 0], [0, 0, 1]])
    zoom = np.diag([zx, zy, 1])
    center = np.array([[1, 0, h / 2 - 0.5], [0, 1, w / 2 - 0.5], [0, 0, 1]])
    whole = center @ rotation @ shift @ shearing @ zoom @ np.linalg.inv(center)
    return whole[[1, 0, 2]][:, [1, 0, 2]][:2]


def sample(image: np.ndarray, matrix: np.ndarray, fill_mode: str, cval: float, order: int) -> np.ndarray:
    """image (h, w, c) at the places that the matrix gives for each pixel; order: 0 the nearest pixel, 1 bilinear."""
    h, w = image.shape[:2]
    rows, columns = np.mgrid[:h, :w].astype(np.float64)
    places = [m[0] * rows + m[1] * columns + m[2] for m in matrix]
    outside = np.zeros((h, w), bool)
    if fill_mode == "constant":
        for place, extent in zip(places, (h, w), strict=True):
            outside |= (place < 0) | (place > extent - 1)
    if fill_mode == "wrap":
        places = [_wrapped(place, max(extent - 1, 1)) for place, extent in zip(places, (h, w), strict=True)]
    if order == 0:
        near = [np.floor(place + 0.5).astype(np.int64) for place in places]
        found = image[_inside(near[0], h, fill_mode), _inside(near[1], w, fill_mode)].astype(np.float64)
    else:
        found = _bilinear(image, places, fill_mode)
    found[outside] = cval
    return found.astype(image.dtype)


def _wrapped(place: np.ndarray, span: int) -> np.ndarray:
    """Places outside of 0..span moved into it by multiples of span, as SciPy's mode "wrap" does."""
    return np.where(place < 0, span - -place % span, np.where(place > span, place % span, place))


def _bilinear(image: np.ndarray, places: list[np.ndarray], fill_mode: str) -> np.ndarray:
    h, w = image.shape[:2]
    low = [np.floor(place).astype(np.int64) for place in places]
    found = np.zeros(image.shape, np.float64)
    for down in (0, 1):
        for right in (0, 1):
            weight = np.abs(1 - down - (places[0] - low[0])) * np.abs(1 - right - (places[1] - low[1]))
            pixel = image[_inside(low[0] + down, h, fill_mode), _inside(low[1] + right, w, fill_mode)]
            found += weight[..., None] * pixel
    return found


def _inside(index: np.ndarray, extent: int, fill_mode: str) -> np.ndarray:
    """The pixel that stands for one outside of the image."""
    if fill_mode == "reflect":
        index = index % (2 * extent)
        return np.where(index < extent, index, 2 * extent - 1 - index)
    return np.clip(index, 0, extent - 1)
