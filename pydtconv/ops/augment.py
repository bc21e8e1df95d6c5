"""`Augment`: random changes of images, by a table of NumPy functions; an image's numbers follow from its place.

What a change draws and what it does with that are apart: masks and boxes follow their images, and layers hand out what
they draw.

The generator of image i of a step is keyed by the seed, the node, the step and the image's place in the global batch:
a run that is resumed, and ranks together, draw what one process would have drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pydtconv.ops.base import Op, Reasons, Spec
from pydtconv.ops.checks import same_float
from pydtconv.ops.functions.tables import image_colour
from pydtconv.ops.functions.tables.image_filters import gaussian_blur

__all__ = ["Augment"]

Generators = Sequence[np.random.Generator]
#: what was drawn, by Keras's names: arrays (n, ...), or structures of them
Numbers = Mapping[str, Any]


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


class Change(NamedTuple):
    """A kind of change.  All take the kind's settings by name.

    draw(shape (n, h, w, c), a generator for each image): the numbers.  images(x, numbers): the images after it.
    masks(x, numbers): their masks, which most changes leave.  columns(numbers): the numbers (n, k) that move boxes.
    """

    draw: Callable[..., Numbers]
    images: Callable[..., np.ndarray]
    masks: Callable[..., np.ndarray] = lambda x, numbers, **_: x
    columns: Callable[..., np.ndarray] | None = None


def generators(key: int, count: int, first: int = 0, step: int = 0, stream: int = 0) -> Generators:
    """The generators of so many images from place `first` of a batch on."""
    counters = [[0, first + i, step, stream] for i in range(count)]
    return [np.random.Generator(np.random.Philox(key=key, counter=counter)) for counter in counters]


def draws(rngs: Generators, low: float, high: float) -> np.ndarray:
    """A number from low to high for each image."""
    return np.array([rng.uniform(low, high) for rng in rngs])


def each(values: Any) -> np.ndarray:
    """Numbers of images as (n, 1, 1, 1)."""
    return np.reshape(values, (-1, 1, 1, 1))


def signs(rngs: Generators) -> np.ndarray:
    return np.where(draws(rngs, 0, 1) > 0.5, -1.0, 1.0)


def chosen(rngs: Generators, factor: Any) -> np.ndarray:
    """Whether images are changed, with a probability that is drawn from a range."""
    return draws(rngs, 0, 1) < draws(rngs, *factor)


def _factors(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    return {"factor": draws(rngs, *factor)}


def _limited(x: np.ndarray, value_range: Any) -> np.ndarray:
    return np.clip(x, *value_range)


def _deltas(shape: Any, rngs: Generators, factor: Any, value_range: Any) -> Numbers:
    low, high = value_range
    return {"rgb_delta": each(draws(rngs, *factor)) * (high - low)}


def _brighter(x: np.ndarray, numbers: Numbers, value_range: Any, **_: Any) -> np.ndarray:
    return _limited(x + numbers["rgb_delta"], value_range)


def _contrasts(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    return {"contrast_factor": each(draws(rngs, 1 - factor[0], 1 + factor[1]))}


def _contrasted(x: np.ndarray, numbers: Numbers, value_range: Any, **_: Any) -> np.ndarray:
    mean = x.mean((1, 2), keepdims=True)
    return _limited((x - mean) * numbers["contrast_factor"] + mean, value_range)


def _grays(shape: Any, rngs: Generators, factor: float) -> Numbers:
    return {"should_apply": each(draws(rngs, 0, 1) < factor)}


def _gray(x: np.ndarray, numbers: Numbers, **_: Any) -> np.ndarray:
    return np.where(numbers["should_apply"], image_colour.rgb_to_grayscale(x, "channels_last"), x)


def _inversions(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    return {"apply_inversion": chosen(rngs, factor)}


def _inverted(x: np.ndarray, numbers: Numbers, value_range: Any, **_: Any) -> np.ndarray:
    return np.where(each(numbers["apply_inversion"]), sum(value_range) - x, x)


def _unit(x: np.ndarray, value_range: Any) -> np.ndarray:
    return (x - value_range[0]) / (value_range[1] - value_range[0])


def _ranged(x: np.ndarray, value_range: Any) -> np.ndarray:
    return np.clip(x, 0, 1) * (value_range[1] - value_range[0]) + value_range[0]


def _turns(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    return {"factor": signs(rngs) * draws(rngs, *factor) * 0.5}


def _turned(x: np.ndarray, numbers: Numbers, value_range: Any, **_: Any) -> np.ndarray:
    hsv = image_colour.rgb_to_hsv(_unit(x, value_range), "channels_last")
    hsv[..., :1] = (hsv[..., :1] + each(numbers["factor"])) % 1
    return _ranged(image_colour.hsv_to_rgb(hsv, "channels_last"), value_range)


def _saturations(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    amount = draws(rngs, *factor)
    return {"factor": amount / np.maximum(1 - amount, 1e-7)}


def _saturated(x: np.ndarray, numbers: Numbers, value_range: Any, **_: Any) -> np.ndarray:
    hsv = image_colour.rgb_to_hsv(x, "channels_last")
    # Keras's limits, whatever x ranges over
    hsv[..., 1:2] = np.clip(hsv[..., 1:2] * each(numbers["factor"]), *value_range)
    return image_colour.hsv_to_rgb(hsv, "channels_last")


def _shifts(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    low, high = factor
    bits = [low if low == high else rng.integers(low, high) for rng in rngs]
    return {"shift_factor": (8 - np.array(bits)).astype("uint8")}


def _posterized(x: np.ndarray, numbers: Numbers, value_range: Any, **_: Any) -> np.ndarray:
    drop = each(numbers["shift_factor"])
    pixels = np.clip((x - value_range[0]) * (255 / (value_range[1] - value_range[0])), 0, 255).astype("uint8")
    kept = (pixels >> drop) << drop
    return _ranged(kept.astype(x.dtype) / 255, value_range)


def _thresholds(shape: Any, rngs: Generators, addition: Any, threshold: Any, **_: Any) -> Numbers:
    return {"additions": each(draws(rngs, *addition)) * 255, "thresholds": each(draws(rngs, *threshold)) * 255}


def _solarized(x: np.ndarray, numbers: Numbers, value_range: Any, **_: Any) -> np.ndarray:
    pixels = _limited(_unit(x, value_range) * 255 + numbers["additions"], (0, 255))
    turned = np.where(pixels < numbers["thresholds"], pixels, 255 - pixels)
    return _ranged(turned / 255, value_range)


def _blend(x: np.ndarray, other: np.ndarray, share: np.ndarray, value_range: Any) -> np.ndarray:
    return _limited(other + share * (x - other), value_range)


def _degenerations(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    return {"factor": each(draws(rngs, *factor))}


def _degenerated(x: np.ndarray, numbers: Numbers, value_range: Any, **_: Any) -> np.ndarray:
    gray = image_colour.rgb_to_grayscale(x, "channels_last")
    return _blend(x, gray, 1 - each(numbers["factor"]), value_range)


def _sharper(x: np.ndarray, numbers: Numbers, value_range: Any, **_: Any) -> np.ndarray:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    total = sum(padded[:, i : i + x.shape[1], j : j + x.shape[2]] for i in range(3) for j in range(3))
    return _blend(x, (total + 4 * x) / 13, 2 * each(numbers["factor"]), value_range)


def _blurs(shape: Any, rngs: Generators, factor: Any, sigma: Any, **_: Any) -> Numbers:
    return {"should_apply_blur": chosen(rngs, factor), "blur_factor": draws(rngs, *sigma)[:, None].repeat(2, 1) + 1e-6}


def _blurred(x: np.ndarray, numbers: Numbers, kernel_size: Any, value_range: Any, **_: Any) -> np.ndarray:
    y, sigmas = np.array(x), np.broadcast_to(numbers["blur_factor"], (len(x), 2))
    for i in np.flatnonzero(numbers["should_apply_blur"]):
        y[i] = gaussian_blur(x[i], kernel_size, tuple(map(float, sigmas[i])), "channels_last")
    return _limited(y, value_range)


def _rectangles(shape: Any, rngs: Generators, factor: Any, scale: Any, fill_value: Any, value_range: Any) -> Numbers:
    """rectangles: (n, 4), top, left, rows, columns.  fill_value: of each image."""
    (n, h, w, c), apply = shape, chosen(rngs, factor)
    rectangles, filling = np.zeros((n, 4), int), [fill_value] * n
    for i, rng in enumerate(rngs):
        if not apply[i]:
            continue
        rows, columns = (min(side, round(side * math.sqrt(rng.uniform(*scale)))) for side in (h, w))
        rectangles[i] = rng.integers(0, h - rows + 1), rng.integers(0, w - columns + 1), rows, columns
        if fill_value is None:
            filling[i] = value_range[1] * rng.standard_normal((rows, columns, c))
    return {"apply_erasing": apply, "rectangles": rectangles, "fill_value": filling}


def _erased(x: np.ndarray, numbers: Numbers, value_range: Any, **_: Any) -> np.ndarray:
    y = np.array(x)
    for i in np.flatnonzero(numbers["apply_erasing"]):
        top, left, rows, columns = numbers["rectangles"][i]
        filling = np.asarray(numbers["fill_value"][i])
        y[i, top : top + rows, left : left + columns] = _limited(filling, value_range)
    return y


#: by kind: what is done to images
CHANGES: dict[str, Change] = {}
#: by kind: what an operator computes of (images, a generator for each, **settings)
TRANSFORMS: dict[str, Callable[..., np.ndarray]] = {}


def _row(kind: str) -> Callable[..., np.ndarray]:
    def transform(x: np.ndarray, rngs: Generators, **settings: Any) -> np.ndarray:
        change = CHANGES[kind]
        return change.images(x, change.draw(x.shape, rngs, **settings), **settings)

    return transform


def enter(changes: Mapping[str, Change]) -> None:
    """Puts kinds into the tables."""
    CHANGES.update(changes)
    TRANSFORMS.update({kind: _row(kind) for kind in changes})


enter(
    {
        "brightness": Change(_deltas, _brighter),
        "color": Change(_degenerations, _degenerated),
        "contrast": Change(_contrasts, _contrasted),
        "erasing": Change(_rectangles, _erased),
        "gaussian_blur": Change(_blurs, _blurred),
        "grayscale": Change(_grays, _gray),
        "hue": Change(_turns, _turned),
        "invert": Change(_inversions, _inverted),
        "posterization": Change(_shifts, _posterized),
        "saturation": Change(_saturations, _saturated),
        "sharpness": Change(_factors, _sharper),
        "solarization": Change(_thresholds, _solarized),
    }
)
