"""`Augment`: random changes of images, by a table of NumPy functions; an image's numbers follow from its place.

The generator of image i of a step is keyed by the seed, the node, the step and the image's place in the global batch:
a run that is resumed, and ranks together, draw what one process would have drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pydtconv.ops.base import Op, Reasons, Spec
from pydtconv.ops.checks import same_float
from pydtconv.ops.functions.tables import image_colour
from pydtconv.ops.functions.tables.image_filters import gaussian_blur

Generators = Sequence[np.random.Generator]


@dataclass(frozen=True)
class Augment(Op):
    """y = TRANSFORMS[kind](images (n, h, w, c), a generator for each, **settings).  It has no gradient."""

    kind: str
    settings: tuple[tuple[str, Any], ...] = ()
    seed: int | None = None

    dense: ClassVar[bool] = True
    draws: ClassVar[bool] = True
    lacks: ClassVar[Reasons] = {
        "gradient": "random images are input, not what is learned",
        "gpu": "it runs NumPy",
        "onnx": "it is for training",
    }

    def __post_init__(self) -> None:
        if self.kind not in TRANSFORMS:
            raise ValueError(f"Augment: expected kind to be one of {', '.join(TRANSFORMS)}, got {self.kind!r}")

    @property
    def name(self) -> str:
        return self.kind

    def reals(self, count: int) -> tuple[int, ...]:
        return tuple(range(count))

    def infer(self, *inputs: Spec) -> Spec:
        same_float(self.kind, *inputs)
        if len(inputs[0].shape) != 4:
            raise ValueError(f"{self.kind}: expected images (n, h, w, c), got shape {inputs[0].shape}")
        return inputs[0]


def _draws(rngs: Generators, low: float, high: float) -> np.ndarray:
    """A number from low to high for each image, (n, 1, 1, 1)."""
    return np.array([rng.uniform(low, high) for rng in rngs]).reshape(-1, 1, 1, 1)


def _signs(rngs: Generators) -> np.ndarray:
    return np.where(_draws(rngs, 0, 1) > 0.5, -1.0, 1.0)


def _limited(x: np.ndarray, value_range: Any) -> np.ndarray:
    return np.clip(x, *value_range)


def _brightness(x: np.ndarray, rngs: Generators, factor: Any, value_range: Any) -> np.ndarray:
    low, high = value_range
    return _limited(x + _draws(rngs, *factor) * (high - low), value_range)


def _contrast(x: np.ndarray, rngs: Generators, factor: Any, value_range: Any) -> np.ndarray:
    mean = x.mean((1, 2), keepdims=True)
    return _limited((x - mean) * _draws(rngs, 1 - factor[0], 1 + factor[1]) + mean, value_range)


def _grayscale(x: np.ndarray, rngs: Generators, factor: float) -> np.ndarray:
    gray = image_colour.rgb_to_grayscale(x, "channels_last")
    return np.where(_draws(rngs, 0, 1) < factor, gray, x)


def _invert(x: np.ndarray, rngs: Generators, factor: Any, value_range: Any) -> np.ndarray:
    chosen = _draws(rngs, 0, 1) < _draws(rngs, *factor)
    return np.where(chosen, sum(value_range) - x, x)


def _unit(x: np.ndarray, value_range: Any) -> np.ndarray:
    return (x - value_range[0]) / (value_range[1] - value_range[0])


def _ranged(x: np.ndarray, value_range: Any) -> np.ndarray:
    return np.clip(x, 0, 1) * (value_range[1] - value_range[0]) + value_range[0]


def _hue(x: np.ndarray, rngs: Generators, factor: Any, value_range: Any) -> np.ndarray:
    turn = _signs(rngs) * _draws(rngs, *factor) * 0.5
    hsv = image_colour.rgb_to_hsv(_unit(x, value_range), "channels_last")
    hsv[..., :1] = (hsv[..., :1] + turn) % 1
    return _ranged(image_colour.hsv_to_rgb(hsv, "channels_last"), value_range)


def _saturation(x: np.ndarray, rngs: Generators, factor: Any, value_range: Any) -> np.ndarray:
    amount = _draws(rngs, *factor)
    amount = amount / np.maximum(1 - amount, 1e-7)
    hsv = image_colour.rgb_to_hsv(x, "channels_last")
    hsv[..., 1:2] = np.clip(hsv[..., 1:2] * amount, *value_range)  # Keras's limits, whatever x ranges over
    return image_colour.hsv_to_rgb(hsv, "channels_last")


def _posterization(x: np.ndarray, rngs: Generators, factor: Any, value_range: Any) -> np.ndarray:
    low, high = factor
    bits = [low if low == high else rng.integers(low, high) for rng in rngs]
    drop = (8 - np.array(bits)).astype("uint8").reshape(-1, 1, 1, 1)
    pixels = np.clip((x - value_range[0]) * (255 / (value_range[1] - value_range[0])), 0, 255).astype("uint8")
    kept = (pixels >> drop) << drop
    return _ranged(kept.astype(x.dtype) / 255, value_range)


def _solarization(x: np.ndarray, rngs: Generators, addition: Any, threshold: Any, value_range: Any) -> np.ndarray:
    low, high = value_range
    more, limit = _draws(rngs, *addition) * 255, _draws(rngs, *threshold) * 255
    pixels = _limited(_unit(x, value_range) * 255 + more, (0, 255))
    turned = np.where(pixels < limit, pixels, 255 - pixels)
    return _ranged(turned / 255, (low, high))


def _blend(x: np.ndarray, other: np.ndarray, share: np.ndarray, value_range: Any) -> np.ndarray:
    return _limited(other + share * (x - other), value_range)


def _color(x: np.ndarray, rngs: Generators, factor: Any, value_range: Any) -> np.ndarray:
    gray = image_colour.rgb_to_grayscale(x, "channels_last")
    return _blend(x, gray, 1 - _draws(rngs, *factor), value_range)


def _sharpness(x: np.ndarray, rngs: Generators, factor: Any, value_range: Any) -> np.ndarray:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    total = sum(padded[:, i : i + x.shape[1], j : j + x.shape[2]] for i in range(3) for j in range(3))
    return _blend(x, (total + 4 * x) / 13, 2 * _draws(rngs, *factor), value_range)


def _gaussian_blur(x: np.ndarray, rngs: Generators, factor: Any, kernel_size: Any, sigma: Any, value_range: Any) -> Any:
    y = np.array(x)
    for i, rng in enumerate(rngs):
        if rng.random() < rng.uniform(*factor):
            width = rng.uniform(*sigma) + 1e-6
            y[i] = gaussian_blur(x[i], kernel_size, (width, width), "channels_last")
    return _limited(y, value_range)


def _erasing(x: np.ndarray, rngs: Generators, factor: Any, scale: Any, fill_value: Any, value_range: Any) -> Any:
    y, (_, h, w, c) = np.array(x), x.shape
    for i, rng in enumerate(rngs):
        if rng.random() >= rng.uniform(*factor):
            continue
        rows, columns = (min(n, round(n * math.sqrt(rng.uniform(*scale)))) for n in (h, w))
        top, left = rng.integers(0, h - rows + 1), rng.integers(0, w - columns + 1)
        filling = value_range[1] * rng.standard_normal((rows, columns, c)) if fill_value is None else fill_value
        y[i, top : top + rows, left : left + columns] = _limited(np.asarray(filling), value_range)
    return y


#: by kind: what is done to images
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "brightness": _brightness,
    "color": _color,
    "contrast": _contrast,
    "erasing": _erasing,
    "gaussian_blur": _gaussian_blur,
    "grayscale": _grayscale,
    "hue": _hue,
    "invert": _invert,
    "posterization": _posterization,
    "saturation": _saturation,
    "sharpness": _sharpness,
    "solarization": _solarization,
}
