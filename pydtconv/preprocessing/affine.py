"""Images turned, shifted, sheared, zoomed: sampled at other places, with Keras's parameters."""

from __future__ import annotations

import math

import numpy as np

from pydtconv.images.steps import affine, change, places

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
    x = np.asarray(image, "float64" if image.dtype == np.float64 else "float32")[None]
    if fill_mode in ("nearest", "reflect"):
        transform = np.array([[*matrix[1, [1, 0, 2]], *matrix[0, [1, 0, 2]], 0, 0]])  # of columns, then of rows
        return change(x, affine(1, transform, order, fill_mode, 0))[0].astype(image.dtype, copy=False)
    # SciPy's "constant" is so for all places outside, also beside the border; its "wrap" has a period that is one less
    row, column = np.arange(h)[:, None], np.arange(w)
    where = np.stack([m[0] * row + m[1] * column + m[2] for m in matrix])
    last = np.array([h - 1, w - 1])[:, None, None]
    outside = ((where < 0) | (where > last)).any(0) if fill_mode == "constant" else np.zeros((h, w), bool)
    if fill_mode == "wrap":
        where = _wrapped(where, np.maximum(last, 1))
    found = change(x, places([where], order, "nearest", 0))[0].astype(image.dtype, copy=False)
    found[outside] = cval
    return found


def _wrapped(place: np.ndarray, span: np.ndarray) -> np.ndarray:
    """Places outside of 0..span moved into it by multiples of span, as SciPy's mode "wrap" does."""
    return np.where(place < 0, span - -place % span, np.where(place > span, place % span, place))
