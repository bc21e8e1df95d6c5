"""`Augment`: random changes of images, by a table; an image's numbers follow from its place.

What a change draws and what it does with that are apart: masks and boxes follow their images, and layers hand out what
they draw.  What most of them do is a list of steps (images/steps.py), which C runs.

The generator of image i of a step is keyed by the seed, the node, the step and the image's place in the global batch:
a run that is resumed, and ranks together, draw what one process would have drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pydtconv.images import steps
from pydtconv.images.step_gradients import gradient
from pydtconv.images.steps import Steps, step
from pydtconv.ops.base import Op, Reasons, Retained, Spec
from pydtconv.ops.checks import same_float
from pydtconv.ops.functions.tables.image_filters import gaussian_weights

__all__ = ["Augment"]

Generators = Sequence[np.random.Generator]
#: what was drawn, by Keras's names: arrays (n, ...), or structures of them
Numbers = Mapping[str, Any]


class Further(NamedTuple):
    """A change behind another one; stream: of its random numbers."""

    kind: str
    settings: tuple[tuple[str, Any], ...]
    seed: int | None
    stream: int


@dataclass(frozen=True)
class Augment(Op):
    """Images (n, h, w, c) after CHANGES[kind], or TRANSFORMS[kind], with these settings.

    then: changes behind it; all are lists of steps (`by_steps`).
    """

    kind: str
    settings: tuple[tuple[str, Any], ...] = ()
    seed: int | None = None
    then: tuple[Further, ...] = ()

    dense: ClassVar[bool] = True
    draws: ClassVar[bool] = True
    accumulates: ClassVar[tuple[int, ...]] = (0,)
    lacks: ClassVar[Reasons] = {
        "gradient": "what it draws is known to the operator alone",
        "gpu": "its numbers are drawn by NumPy",
        "onnx": "it is for training",
    }

    def __post_init__(self) -> None:
        if self.kind not in CHANGES and self.kind not in TRANSFORMS:
            raise ValueError(
                f"Augment: expected kind to be one of {', '.join((*CHANGES, *TRANSFORMS))}, got {self.kind!r}"
            )

    @property
    def name(self) -> str:
        return "+".join([self.kind, *(each.kind for each in self.then)])

    @property
    def by_steps(self) -> bool:
        """Whether what it does to an image is a list of steps (images/steps.py)."""
        change = CHANGES.get(self.kind)
        return change is not None and change.images is None

    def reals(self, count: int) -> tuple[int, ...]:
        return tuple(range(count))

    def retains(self, needs: tuple[bool, ...]) -> Retained:
        return Retained(x=(0,))

    def infer(self, *inputs: Spec) -> Spec:
        same_float(self.name, *inputs)
        if len(inputs[0].shape) != 4:
            raise ValueError(f"{self.name}: expected images (n, h, w, c), got shape {inputs[0].shape}")
        return inputs[0]


class Change(NamedTuple):
    """A kind of change.  All take the kind's settings by name.

    draw(shape (n, h, w, c), a generator for each image): the numbers.  steps(shape, numbers): what images go through.
    masks(shape, numbers): what their masks go through, which most changes leave.  columns(numbers): the numbers (n, k)
    that move boxes.  images, mixed_masks(x, numbers, dy): images and masks after it, where that is no list for each
    image; with dy their gradients, see `through`.
    """

    draw: Callable[..., Numbers]
    steps: Callable[..., Steps] | None
    masks: Callable[..., Steps] | None = None
    columns: Callable[..., np.ndarray] | None = None
    images: Callable[..., np.ndarray] | None = None
    mixed_masks: Callable[..., np.ndarray] | None = None


def through(x: np.ndarray, found: Steps, dy: np.ndarray | None) -> np.ndarray:
    """Images (n, h, w, c) after steps; with dy the gradient by x of the sum of dy times them, as in what follows."""
    return steps.change(x, found) if dy is None else gradient(x, found, dy)


def changed(
    kind: str, x: np.ndarray, numbers: Numbers, settings: Mapping[str, Any], dy: np.ndarray | None = None
) -> np.ndarray:
    """Images (n, h, w, c) after a change."""
    change = CHANGES[kind]
    if change.images is not None:
        return change.images(x, numbers, dy=dy, **settings)
    assert change.steps is not None
    return through(x, change.steps(x.shape, numbers, **settings), dy)


def changed_masks(
    kind: str, x: np.ndarray, numbers: Numbers, settings: Mapping[str, Any], dy: np.ndarray | None = None
) -> np.ndarray:
    """Masks (n, h, w, c) after a change of their images."""
    change = CHANGES[kind]
    if change.mixed_masks is not None:
        return change.mixed_masks(x, numbers, dy=dy, **settings)
    if change.masks is None:
        return x if dy is None else dy
    return through(x, change.masks(x.shape, numbers, **settings), dy)


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


def colours(name: str, shape: Sequence[int], counts: Sequence[int] = (3,)) -> int:
    """How many images there are of a shape (n, h, w, c).  Raises ValueError for other counts of channels."""
    if shape[-1] not in counts:
        raise ValueError(
            f"{name}: expected images of {' or '.join(map(str, counts))} channels, got shape {tuple(shape)}"
        )
    return shape[0]


def signs(rngs: Generators) -> np.ndarray:
    return np.where(draws(rngs, 0, 1) > 0.5, -1.0, 1.0)


def chosen(rngs: Generators, factor: Any) -> np.ndarray:
    """Whether images are changed, with a probability that is drawn from a range."""
    return draws(rngs, 0, 1) < draws(rngs, *factor)


def _factors(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    return {"factor": draws(rngs, *factor)}


def _deltas(shape: Any, rngs: Generators, factor: Any, value_range: Any) -> Numbers:
    low, high = value_range
    return {"rgb_delta": each(draws(rngs, *factor)) * (high - low)}


def _brighter(shape: Any, numbers: Numbers, value_range: Any, **_: Any) -> Steps:
    return step("add", shape[0], numbers["rgb_delta"], *value_range)


def _contrasts(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    return {"contrast_factor": each(draws(rngs, 1 - factor[0], 1 + factor[1]))}


def _contrasted(shape: Any, numbers: Numbers, value_range: Any, **_: Any) -> Steps:
    return step("contrast", shape[0], numbers["contrast_factor"], *value_range)


def _grays(shape: Any, rngs: Generators, factor: float) -> Numbers:
    return {"should_apply": each(draws(rngs, 0, 1) < factor)}


def _gray(shape: Any, numbers: Numbers, **_: Any) -> Steps:
    colours("grayscale", shape, (1, 3))
    return step("gray", shape[0], where=numbers["should_apply"] if shape[-1] == 3 else False)


def _inversions(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    return {"apply_inversion": chosen(rngs, factor)}


def _inverted(shape: Any, numbers: Numbers, value_range: Any, **_: Any) -> Steps:
    return step("invert", shape[0], sum(value_range), where=numbers["apply_inversion"])


def _turns(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    return {"factor": signs(rngs) * draws(rngs, *factor) * 0.5}


def _turned(shape: Any, numbers: Numbers, value_range: Any, **_: Any) -> Steps:
    return step("hue", colours("hue", shape), numbers["factor"], *value_range)


def _saturations(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    amount = draws(rngs, *factor)
    return {"factor": amount / np.maximum(1 - amount, 1e-7)}


def _saturated(shape: Any, numbers: Numbers, value_range: Any, **_: Any) -> Steps:
    # Keras's limits, whatever x ranges over
    return step("saturation", colours("saturation", shape), numbers["factor"], *value_range)


def _shifts(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    low, high = factor
    bits = [low if low == high else rng.integers(low, high) for rng in rngs]
    return {"shift_factor": (8 - np.array(bits)).astype("uint8")}


def _posterized(shape: Any, numbers: Numbers, value_range: Any, **_: Any) -> Steps:
    return step("posterize", shape[0], numbers["shift_factor"], *value_range)


def _thresholds(shape: Any, rngs: Generators, addition: Any, threshold: Any, **_: Any) -> Numbers:
    return {"additions": each(draws(rngs, *addition)) * 255, "thresholds": each(draws(rngs, *threshold)) * 255}


def _solarized(shape: Any, numbers: Numbers, value_range: Any, **_: Any) -> Steps:
    return step("solarize", shape[0], numbers["additions"], numbers["thresholds"], *value_range)


def _degenerations(shape: Any, rngs: Generators, factor: Any, **_: Any) -> Numbers:
    return {"factor": each(draws(rngs, *factor))}


def _degenerated(shape: Any, numbers: Numbers, value_range: Any, **_: Any) -> Steps:
    gray = colours("color degeneration", shape, (1, 3))
    if shape[-1] == 1:
        return step("add", gray, 0, *value_range)
    return step("colour", gray, 1 - np.asarray(numbers["factor"]), *value_range)


def _sharper(shape: Any, numbers: Numbers, value_range: Any, **_: Any) -> Steps:
    return step("sharpness", shape[0], 2 * np.asarray(numbers["factor"]), *value_range)


def _blurs(shape: Any, rngs: Generators, factor: Any, sigma: Any, **_: Any) -> Numbers:
    return {"should_apply_blur": chosen(rngs, factor), "blur_factor": draws(rngs, *sigma)[:, None].repeat(2, 1) + 1e-6}


def _blurred(shape: Any, numbers: Numbers, kernel_size: Any, value_range: Any, **_: Any) -> Steps:
    n, apply = shape[0], np.reshape(numbers["should_apply_blur"], -1).astype(bool)
    # Keras has those of columns first
    weights = [
        gaussian_weights(size, np.reshape(numbers["blur_factor"], (-1, 2))[:, i]) for i, size in enumerate(kernel_size)
    ]
    across, down = kernel_size
    extra = np.concatenate([np.broadcast_to(each, (n, each.shape[1])) for each in weights[::-1]], 1)
    starts = np.arange(n) * (down + across)
    filters = down, starts, across, starts + down
    blurred = step("blur", n, *filters, *value_range, where=apply, extra=extra.reshape(-1))
    return steps.in_turn([blurred, step("add", n, 0, *value_range, where=~apply)])


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


def _erased(shape: Any, numbers: Numbers, value_range: Any, **_: Any) -> Steps:
    (n, _, _, c), rectangles = shape, np.reshape(numbers["rectangles"], (-1, 4))
    apply = np.broadcast_to(np.reshape(numbers["apply_erasing"], -1), (n,))
    values, starts, noise, start = [0.0] * n, [-1] * n, [np.zeros(0)], 0
    for i in np.flatnonzero(apply):
        filling = np.asarray(numbers["fill_value"][i], float)
        if filling.ndim:  # a value of each pixel, or of each channel
            noise.append(np.broadcast_to(filling, (*rectangles[i, 2:], c)).reshape(-1))
            starts[i], start = start, start + noise[-1].size
        else:
            values[i] = float(filling)
    filled = starts, values, *value_range
    return step("erase", n, *rectangles.T, *filled, where=apply, extra=np.concatenate(noise))


def nothing_drawn(shape: Any, rngs: Generators, **_: Any) -> Numbers:
    return {}


def _scaled(shape: Any, numbers: Numbers, scale: Any, offset: Any) -> Steps:
    """scale, offset: of each channel, or one of all."""
    (n, *_, c) = shape
    extra = np.concatenate([np.broadcast_to(np.asarray(each, float), (c,)) for each in (scale, offset)])
    return step("scale", n, 0, extra=extra)


#: by kind: what is done to images
CHANGES: dict[str, Change] = {}
#: by kind: what is no list of steps, and what else an operator computes, of (images, a generator for each, **settings),
#: and with dy=... its gradient
TRANSFORMS: dict[str, Callable[..., np.ndarray]] = {}


def enter(changes: Mapping[str, Change]) -> None:
    """Puts kinds into the tables."""
    CHANGES.update(changes)
    TRANSFORMS.update({kind: _drawn(kind) for kind, change in changes.items() if change.images is not None})


def _drawn(kind: str) -> Callable[..., np.ndarray]:
    def transform(x: np.ndarray, rngs: Generators, dy: np.ndarray | None = None, **settings: Any) -> np.ndarray:
        return changed(kind, x, CHANGES[kind].draw(x.shape, rngs, **settings), settings, dy)

    return transform


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
        "scale": Change(nothing_drawn, _scaled),
        "saturation": Change(_saturations, _saturated),
        "sharpness": Change(_factors, _sharper),
        "solarization": Change(_thresholds, _solarized),
    }
)
