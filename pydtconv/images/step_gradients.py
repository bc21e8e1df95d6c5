"""Gradients of lists of steps (see steps.py) by the images: each step's rule, in doubles, from the last to the first.

A resampling is linear in the image: its gradient puts each pixel's gradient back to the pixels that it was made of.
Whole numbers and ranks have none.  Limits pass the gradients of what lies within them, or at them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv.images.places import spread
from pydtconv.images.steps import _KINDS, FILL_MODES, Steps, change, places_of

#: of red, green and blue in the brightness
_WEIGHTS = np.array([0.2989, 0.5870, 0.1140])

#: (numbers of a step, `extra`, image before it, gradient of the image after it) -> that of the image before it
Rule = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def gradient(x: np.ndarray, steps: Steps, dy: np.ndarray) -> np.ndarray:
    """The gradient by images (n, h, w, c) of the sum of dy times `change(x, steps)`."""
    before, dx = [x.astype("float64")], dy.astype("float64")
    for place in range(steps.rows.shape[1] - 1):
        before.append(change(before[-1], Steps(steps.rows[:, place : place + 1], steps.extra)))
    for place in range(steps.rows.shape[1] - 1, -1, -1):
        for i, step in enumerate(steps.rows[:, place]):
            if step[0]:
                dx[i] = _RULES[_KINDS[int(step[0]) - 1]](step, steps.extra, before[place][i], dx[i])
    return dx


def _affine(step: np.ndarray, extra: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        coordinates = places_of((1, *x.shape), step[None, 4:12])[0]
    return _moved(step, extra, coordinates, x, dy)


def _places(step: np.ndarray, extra: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    start = int(step[4])
    coordinates = extra[start : start + 2 * x[..., 0].size].reshape(2, *x.shape[:2])
    return _moved(step, extra, coordinates, x, dy)


def _moved(step: np.ndarray, extra: np.ndarray, coordinates: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    (h, w, c), dx = x.shape, np.zeros(x.shape)
    if step[1]:
        mode = FILL_MODES[int(step[2])]  # as in C, no number is at 0, nor is what is infinite where images repeat
        far = 1e9 if mode in ("constant", "nearest") else 0
        spread(dx, np.nan_to_num(coordinates, posinf=far, neginf=-far), dy, 1, mode)
        return dx
    outside = step[None, None].copy()  # the nearest pixels, as `change` finds them
    outside[..., 3] = -1
    at = change(np.arange(float(h * w)).reshape(1, h, w, 1), Steps(outside, extra)).reshape(-1).astype(int)
    np.add.at(dx.reshape(h * w, c), at[at >= 0], dy.reshape(h * w, c)[at >= 0])
    return dx


def _within(z: np.ndarray, limits: Any, dy: np.ndarray) -> np.ndarray:
    return np.where((z >= limits[0]) & (z <= limits[1]), dy, 0)


def _contrast(step: np.ndarray, extra: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    mean, factor = x.mean((0, 1)), step[1]
    g = _within((x - mean) * factor + mean, step[2:4], dy)
    return factor * g + (1 - factor) * g.mean((0, 1))


def _gray(dy: np.ndarray) -> np.ndarray:
    return _WEIGHTS * dy.sum(-1, keepdims=True)


def _solarize(step: np.ndarray, extra: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    byte = (x - step[3]) * (255 / (step[4] - step[3])) + step[1]
    return _within(byte, (0, 255), np.where(np.clip(byte, 0, 255) < step[2], dy, -dy))


def _colour(step: np.ndarray, extra: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    gray, share = x @ _WEIGHTS[:, None], step[1]
    g = _within(gray + share * (x - gray), step[2:4], dy)
    return share * g + (1 - share) * _gray(g)


def _smooth(x: np.ndarray) -> np.ndarray:
    """Of each pixel the mean with its neighbours, it itself five times; it is its own transpose."""
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    h, w, _ = x.shape
    return (sum(padded[i : i + h, j : j + w] for i in range(3) for j in range(3)) + 4 * x) / 13


def _sharpness(step: np.ndarray, extra: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    smooth, share = _smooth(x), step[1]
    g = _within(smooth + share * (x - smooth), step[2:4], dy)
    return share * g + (1 - share) * _smooth(g)


def _filtered(x: np.ndarray, axis: int, weights: np.ndarray, way: int) -> np.ndarray:
    """Sums along an axis, zeros outside; way: 1, or -1 for the transpose."""
    y, x = np.zeros(x.shape), np.moveaxis(x, axis, 0)
    to, extent = np.moveaxis(y, axis, 0), x.shape[0]
    for i, weight in enumerate(weights):
        shift = min(max(way * (i - len(weights) // 2), -extent), extent)
        to[max(-shift, 0) : extent - max(shift, 0)] += weight * x[max(shift, 0) : extent - max(-shift, 0)]
    return y


def _blur(step: np.ndarray, extra: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    down, across = (extra[int(step[i + 1]) : int(step[i + 1] + step[i])] for i in (1, 3))
    g = _within(_filtered(_filtered(x, 0, down, 1), 1, across, 1), step[5:7], dy)
    return _filtered(_filtered(g, 1, across, -1), 0, down, -1)


def _erase(step: np.ndarray, extra: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    top, left, rows, columns = step[1:5].astype(int)
    dx = dy.copy()
    dx[top : top + rows, left : left + columns] = 0
    return dx


def _auto_contrast(step: np.ndarray, extra: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Equal least or largest values share what is theirs."""
    (low, high), least, largest = step[1:3], x.min((0, 1)), x.max((0, 1))
    flat, span = least == largest, np.where(least == largest, 1, largest - least)
    slope, place = (high - low) / span, (x - least) / span
    of_largest = -(dy * place).sum((0, 1)) * slope
    of_least = -dy.sum((0, 1)) * slope - of_largest
    dx = dy * slope
    for ends, whole in ((x == least, of_least), (x == largest, of_largest)):
        dx = dx + ends * whole / ends.sum((0, 1))
    return np.where(flat, dy, dx)


def _equalize(step: np.ndarray, extra: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Ranks have none; a channel that lies in one bin stays as it is."""
    last = step[1] - 1
    bins = np.clip((x - step[3]) / (step[4] - step[3]) * last, 0, last).astype(int)
    return np.where(bins.min((0, 1)) == bins.max((0, 1)), dy, 0)


class _Hues:
    """Value, chroma and hue of RGB, and the way back: y = value + chroma (ramp(hue) - 1)."""

    def __init__(self, rgb: np.ndarray) -> None:
        self.rgb = rgb
        self.largest, self.least = rgb.argmax(-1), rgb.argmin(-1)
        self.value = rgb.max(-1)
        self.chroma = self.value - rgb.min(-1)
        self.sixth = np.where(self.chroma > 0, 1 / (6 * np.where(self.chroma > 0, self.chroma, 1)), 0)
        #: of the two channels that tell the hue, the one that counts positively and the other one
        self.more, self.less = (self.largest + 1) % 3, (self.largest + 2) % 3
        self.difference = self._of(self.more) - self._of(self.less)
        self.hue = self.difference * self.sixth + self.largest / 3

    def _of(self, channel: np.ndarray) -> np.ndarray:
        return np.take_along_axis(self.rgb, channel[..., None], -1)[..., 0]

    @staticmethod
    def ramps(hue: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How much of each channel a hue has, and the slope of that."""
        place = (hue[..., None] + np.array([3, 2, 1]) / 3) % 1 * 6 - 3
        ramp = np.abs(place) - 1
        return np.clip(ramp, 0, 1), _within(ramp, (0, 1), 6 * np.sign(place))

    def back(self, by_value: np.ndarray, by_chroma: np.ndarray, by_hue: np.ndarray) -> np.ndarray:
        """The gradient of RGB by those of value, chroma and hue."""
        by_difference = by_hue * self.sixth
        by_chroma = by_chroma - by_difference * 6 * self.difference * self.sixth
        dx = np.zeros(self.rgb.shape)
        parts = [(self.largest, by_value + by_chroma), (self.least, -by_chroma)]
        for channel, g in [*parts, (self.more, by_difference), (self.less, -by_difference)]:
            dx += (np.arange(3) == channel[..., None]) * g[..., None]
        return dx


def _hue(step: np.ndarray, extra: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    turn, low, high = step[1:4]
    hues = _Hues((x - low) / (high - low))
    positive = hues.value > 0
    ramps, slopes = hues.ramps(hues.hue + turn)
    chroma = np.where(positive, hues.chroma, 0)
    g = _within(hues.value[..., None] + chroma[..., None] * (ramps - 1), (0, 1), dy)
    return hues.back(g.sum(-1), positive * (g * (ramps - 1)).sum(-1), chroma * (g * slopes).sum(-1))


def _saturation(step: np.ndarray, extra: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    factor, low, high = step[1:4]
    hues = _Hues(x)
    ramps, slopes = hues.ramps(hues.hue)
    share = factor * np.where(hues.value > 0, hues.chroma / np.where(hues.value > 0, hues.value, 1), 0)
    limit = np.clip(share, low, high)
    along = (dy * (ramps - 1)).sum(-1)
    free = (share >= low) & (share <= high) & (hues.value > 0)
    by_value = dy.sum(-1) + np.where(free, 0, limit * along)
    return hues.back(by_value, np.where(free, factor * along, 0), hues.value * limit * (dy * slopes).sum(-1))


def _scale(step: np.ndarray, extra: np.ndarray, x: np.ndarray, dy: np.ndarray) -> np.ndarray:
    return dy * extra[int(step[1]) : int(step[1]) + x.shape[-1]]


_RULES: dict[str, Rule] = {
    "affine": _affine,
    "places": _places,
    "add": lambda step, extra, x, dy: _within(x + step[1], step[2:4], dy),
    "contrast": _contrast,
    "gray": lambda step, extra, x, dy: _gray(dy),
    "invert": lambda step, extra, x, dy: -dy,
    "hue": _hue,
    "saturation": _saturation,
    "posterize": lambda step, extra, x, dy: np.zeros(dy.shape),
    "solarize": _solarize,
    "colour": _colour,
    "sharpness": _sharpness,
    "blur": _blur,
    "erase": _erase,
    "auto_contrast": _auto_contrast,
    "equalize": _equalize,
    "scale": _scale,
}
