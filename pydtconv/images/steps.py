"""Changes of images as lists of steps, one list for each image, which C runs in one pass (cext/image/changes.c).

What each step does, and its numbers, says cext/include/dtconv_image_changes.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pydtconv._ext import image_changes

#: what is outside of images, in the order of dtconv_fill
FILL_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")
#: kinds of interpolation, by their order
ORDERS = {"nearest": 0, "bilinear": 1}

#: kinds in the order of dtconv_step, from 1 on; 0 ends a list, or stands for nothing within it
_KINDS = (
    "affine", "places", "add", "contrast", "gray", "invert", "hue", "saturation", "posterize", "solarize", "colour",
    "sharpness", "blur", "erase", "auto_contrast", "equalize", "scale",
)  # fmt: skip
_CODES = {kind: code for code, kind in enumerate(_KINDS, 1)}
#: which of a step's numbers are places in `extra`
_PLACES = {"places": (4,), "blur": (2, 4), "erase": (5,), "equalize": (2,), "scale": (1,)}
_JOINED = 12


class Steps(NamedTuple):
    """rows: (n, count, numbers of a step), of each of n images.  extra: further numbers, by their places there.

    Some of `extra` may be room that C writes to.
    """

    rows: np.ndarray
    extra: np.ndarray


_NOTHING = np.zeros(0)


def step(kind: str, count: int, *numbers: Any, where: Any = True, extra: np.ndarray = _NOTHING) -> Steps:
    """A step of `count` images.  numbers: one, or one for each image; where: the images that it changes."""
    rows = np.zeros((count, 1, image_changes.NUMBERS))
    rows[:, 0, 0] = np.where(np.reshape(where, -1), _CODES[kind], 0)
    for place, value in enumerate(numbers, 1):
        rows[:, 0, place] = np.reshape(value, -1)
    return Steps(rows, extra)


def affine(
    count: int, transforms: np.ndarray, order: int, fill_mode: str, fill_value: float, where: Any = True
) -> Steps:
    """Pixels from where projective transforms (count or 1, 8) say.  Raises ValueError for other orders and modes."""
    check_filling("affine_transform", order, fill_mode)
    return step("affine", count, order, FILL_MODES.index(fill_mode), fill_value, *transforms.T, where=where)


def places_of(images: Sequence[int], transforms: np.ndarray) -> np.ndarray:
    """Coordinates (n, 2, h, w) that projective transforms (n, 8) give pixels of images: rows and columns."""
    y, x = np.meshgrid(np.arange(images[1], dtype="float64"), np.arange(images[2], dtype="float64"), indexing="ij")
    t = [transforms[:, i].astype("float64")[:, None, None] for i in range(8)]
    below = t[6] * x + t[7] * y + 1
    return np.stack([(t[3] * x + t[4] * y + t[5]) / below, (t[0] * x + t[1] * y + t[2]) / below], 1)


def places(coordinates: Sequence[np.ndarray | None], order: int, fill_mode: str, fill_value: float) -> Steps:
    """Pixels from coordinates (2, h, w), rows and columns, of each image; None: it stays."""
    check_filling("elastic_transform", order, fill_mode)
    known = [each is not None for each in coordinates]
    given = [np.reshape(each, -1) for each in coordinates if each is not None]
    starts = np.cumsum([0] + [0 if each is None else each.size for each in coordinates])[:-1]
    extra = np.concatenate(given) if given else _NOTHING
    filling = order, FILL_MODES.index(fill_mode), fill_value
    return step("places", len(coordinates), *filling, starts, where=known, extra=extra)


def check_filling(name: str, order: int, fill_mode: str) -> None:
    if order not in (0, 1):
        raise NotImplementedError(f"{name}: order: expected 0 or 1, got {order}")
    if fill_mode not in FILL_MODES:
        raise ValueError(f"{name}: fill_mode: expected one of {', '.join(FILL_MODES)}, got {fill_mode!r}")


def in_turn(parts: Sequence[Steps]) -> Steps:
    """The steps of the same images one behind the other."""
    return _together(parts, lambda rows: np.concatenate(rows, axis=1))


def side_by_side(parts: Sequence[Steps]) -> Steps:
    """Those of further images: a batch of all."""
    most = max(part.rows.shape[1] for part in parts)

    def stack(rows: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([np.pad(each, ((0, 0), (0, most - each.shape[1]), (0, 0))) for each in rows])

    return _together(parts, stack)


def _together(parts: Sequence[Steps], join: Any) -> Steps:
    if len(parts) == 1:
        return parts[0]
    moved, start = [], 0
    for rows, extra in parts:
        moved.append(_shifted(rows, start) if start else rows)
        start += len(extra)
    return Steps(join(moved), np.concatenate([part.extra for part in parts]))


def _shifted(rows: np.ndarray, start: int) -> np.ndarray:
    """Rows whose places in `extra` are so much later; negative ones are none."""
    rows = rows.copy()
    for kind, columns in _PLACES.items():
        here = rows[..., 0] == _CODES[kind]
        for column in columns if here.any() else ():
            own = rows[..., column]
            own[here & (own >= 0)] += start
    return rows


def joined(steps: Steps) -> Steps:
    """The same where affine steps that follow each other are one resampling.

    The result is as before but for the interpolation between: their orders are the same, and a mode "wrap", across
    whose borders there is interpolation, comes first alone.
    """
    rows = steps.rows.copy()
    for before, after in zip(rows.swapaxes(0, 1), rows.swapaxes(0, 1)[1:], strict=False):
        both = (before[:, 0] == _CODES["affine"]) & (after[:, 0] == _CODES["affine"])
        same = (before[:, 1] == after[:, 1]) & (after[:, 2] != FILL_MODES.index("wrap"))
        after[:, _JOINED] = both & same
    return Steps(rows, steps.extra)


def workspace(shape: Sequence[int], dtype: str) -> int:
    """Bytes for `change` of images (n, h, w, c)."""
    return image_changes.workspace(*shape[1:], dtype)


def change(x: np.ndarray, steps: Steps, y: np.ndarray | None = None, memory: np.ndarray | None = None) -> np.ndarray:
    """Images (n, h, w, c) of float32 or float64 after the steps; in y, where it is given.

    memory: bytes as `workspace` says; None: its own.
    Raises ValueError for steps that do not fit the images.
    """
    x = np.ascontiguousarray(x)
    y = np.empty_like(x) if y is None else y
    given = steps.rows[..., 0] != 0
    starts = np.concatenate([[0], np.cumsum(given.sum(1))])
    if memory is None:
        memory = np.empty(workspace(x.shape, x.dtype.name), np.uint8)
    image_changes.change(x, starts, steps.rows[given], steps.extra, y, memory)
    return y
