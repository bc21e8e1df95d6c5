"""Changes of images that look at their histograms or consist of others: more rows of augment.py's table."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv.ops.augment import TRANSFORMS, Generators
from pydtconv.ops.augment_moves import DRAWN, MOVED, drawn
from pydtconv.ops.functions.tables import image_geometry
from pydtconv.ops.functions.tables.image_contrast import clahe

#: kinds with their settings, as an operator keeps them
Policies = Sequence[tuple[str, Sequence[tuple[str, Any]]]]


def _auto_contrast(x: np.ndarray, rngs: Generators, value_range: Any) -> np.ndarray:
    """Each channel of each image stretched to the whole range; one of a single value stays."""
    low, high = x.min((1, 2), keepdims=True), x.max((1, 2), keepdims=True)
    first, last = value_range
    with np.errstate(all="ignore"):
        stretched = np.clip((x - low) * ((last - first) / (high - low)) + first, first, last)
    return np.where(high > low, stretched, x)


def _equalization(x: np.ndarray, rngs: Generators, value_range: Any, bins: int) -> np.ndarray:
    """Values by their rank among those of a channel of the batch, as Keras has it."""
    first, last = value_range
    pixels = (x - first) * (255 / (last - first))
    result = np.empty_like(pixels)
    for channel in range(x.shape[-1]):
        values = pixels[..., channel]
        places = np.clip((values * ((bins - 1) / 255)).astype(np.int64), 0, bins - 1)
        count = np.cumsum(np.bincount(places.reshape(-1), minlength=bins))
        least = count[np.flatnonzero(count)[0]]
        if count[-1] == least:
            result[..., channel] = values
        else:
            table = np.clip(np.round((count - least) * 255 / (count[-1] - least)), 0, 255)
            result[..., channel] = table[places]
    return result * ((last - first) / 255) + first


def _clahe(x: np.ndarray, rngs: Generators, value_range: Any, clip_limit: float, tile_grid_size: Any) -> np.ndarray:
    """By the histograms of tiles."""
    return clahe(x, value_range, clip_limit, tile_grid_size)


def _in_turn(x: np.ndarray, rngs: Generators, policies: Policies) -> np.ndarray:
    """One behind the other."""
    for kind, settings in policies:
        x = TRANSFORMS[kind](x, rngs, **dict(settings))
    return x


#: the kinds of changes that move pixels, by the number that tells them apart to those who move boxes
CODES = {"rotation": 1, "shear": 2, "translation": 3}
#: numbers of a change: its code, and up to two of its own
PER_CHANGE = 3


def _moved(
    image: np.ndarray, mask: np.ndarray | None, rngs: Generators, kind: str, settings: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Images changed by one kind, their masks by the same draw and to the nearest pixels, and the numbers drawn."""
    if kind not in DRAWN:
        return TRANSFORMS[kind](image, rngs, **settings), mask, np.zeros((len(image), 0))
    numbers, filling = drawn(kind, image, rngs, settings)
    if mask is not None:
        mask = MOVED[kind](mask, numbers, **{**filling, "interpolation": "nearest"})
    return MOVED[kind](image, numbers, **filling), mask, numbers


def _chosen(
    image: np.ndarray, mask: np.ndarray | None, rng: np.random.Generator, policies: Policies, depth: int
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """One image (1, h, w, c), changed by so many that are drawn, its mask, and PER_CHANGE numbers of each."""
    told = np.zeros((depth, PER_CHANGE))
    for row in told:
        kind, settings = policies[int(rng.integers(len(policies)))]
        image, mask, numbers = _moved(image, mask, [rng], kind, dict(settings))
        row[0] = CODES.get(kind, 0)
        row[1 : 1 + numbers.size] = numbers.reshape(-1)
    return image, mask, told.reshape(1, -1)


def _rand_augmented(
    x: np.ndarray, masks: np.ndarray | None, rngs: Generators, policies: Policies, num_ops: int
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    one = [
        _chosen(x[i : i + 1], None if masks is None else masks[i : i + 1], rng, policies, num_ops)
        for i, rng in enumerate(rngs)
    ]
    images, changed, numbers = zip(*one, strict=True)
    return np.concatenate(images), None if masks is None else np.concatenate(changed), np.concatenate(numbers)


def _rand_augment(x: np.ndarray, rngs: Generators, policies: Policies, num_ops: int) -> np.ndarray:
    """Cubuk et al. (2020)."""
    return _rand_augmented(x, None, rngs, policies, num_ops)[0]


def _aug_mixed(
    x: np.ndarray,
    masks: np.ndarray | None,
    rngs: Generators,
    policies: Policies,
    num_chains: int,
    chain_depth: int,
    alpha: float,
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    images, changed = np.empty_like(x), None if masks is None else np.empty_like(masks)
    for i, rng in enumerate(rngs):
        image, mask = x[i : i + 1], None if masks is None else masks[i : i + 1]
        weights, share = rng.dirichlet([alpha] * num_chains), rng.beta(alpha, alpha)
        chains = [_chosen(image, mask, rng, policies, int(rng.integers(1, chain_depth + 1))) for _ in weights]
        for part, given, result in ((0, image, images), (1, mask, changed)):
            if given is not None and result is not None:
                mixed = sum(weight * np.asarray(chain[part]) for weight, chain in zip(weights, chains, strict=True))
                result[i] = (share * given + (1 - share) * mixed)[0]
    return images, changed, np.zeros((len(x), 0))


def _aug_mix(x: np.ndarray, rngs: Generators, **settings: Any) -> np.ndarray:
    """m x + (1 - m) sum(w_i chain_i(x)), w of Dirichlet's, m of the beta distribution; Hendrycks et al. (2020)."""
    return _aug_mixed(x, None, rngs, **settings)[0]


def _with_masks(
    x: np.ndarray, rngs: Generators, kind: str, settings: Sequence[tuple[str, Any]], channels: int, numbers: int
) -> np.ndarray:
    """Images of so many channels and behind them their masks, and the numbers drawn for each image as last channels."""
    parts = np.split(x, [channels, x.shape[-1] - numbers], -1)
    image, mask, own = parts[0], parts[1] if parts[1].shape[-1] else None, dict(settings)
    if kind == "rand_augment":
        found = _rand_augmented(image, mask, rngs, **own)
    elif kind == "aug_mix":
        found = _aug_mixed(image, mask, rngs, **own)
    elif kind == "elastic":
        again = [copy.deepcopy(rng) for rng in rngs]
        to_nearest = {**own, "interpolation": "nearest"}
        found = _elastic(image, rngs, **own), mask if mask is None else _elastic(mask, again, **to_nearest), parts[2]
    else:
        found = _moved(image, mask, rngs, kind, own)
    result = np.array(x)
    result[..., :channels] = found[0]
    if mask is not None:
        result[..., channels : x.shape[-1] - numbers] = found[1]
    if numbers:
        result[..., x.shape[-1] - numbers :] = found[2][:, None, None]
    return result


def _elastic(
    x: np.ndarray, rngs: Generators, factor: Any, scale: Any, value_range: Any, interpolation: str, **filling: Any
) -> np.ndarray:
    order = {"nearest": 0, "bilinear": 1}[interpolation]
    result, (_, h, w, _) = np.array(x), x.shape
    for i, rng in enumerate(rngs):
        apply, amount = rng.random() < rng.uniform(*factor), rng.uniform(*scale)
        if apply and amount > 0:
            alpha, sigma = max(h, w) * 0.1 * amount, min(h, w) * 0.05 * amount
            moved = image_geometry.elastic(x[i : i + 1], [rng], alpha, sigma, order, **filling)
            result[i] = np.clip(moved[0], *value_range)
    return result


def _of_generators(draw: Callable[..., float]) -> Callable[..., np.ndarray]:
    """Numbers (n, 1, 1, 1), one of each generator."""

    def transform(x: np.ndarray, rngs: Generators, **settings: float) -> np.ndarray:
        return np.array([draw(rng, **settings) for rng in rngs]).reshape(-1, 1, 1, 1)

    return transform


def _beta_between(rng: np.random.Generator, low: float, high: float) -> float:
    """Of the beta distribution, whose two parameters are equal and drawn first."""
    alpha = rng.uniform(low, high) + 1e-6
    return rng.beta(alpha, alpha)


TRANSFORMS.update(
    {
        "beta": _of_generators(lambda rng, alpha, beta: rng.beta(alpha, beta)),
        "beta_between": _of_generators(_beta_between),
        "binomial": _of_generators(lambda rng, counts, probabilities: rng.binomial(int(counts), probabilities)),
        "gamma": _of_generators(lambda rng, alpha: rng.gamma(alpha)),
        "aug_mix": _aug_mix,
        "auto_contrast": _auto_contrast,
        "clahe": _clahe,
        "elastic": _elastic,
        "equalization": _equalization,
        "in_turn": _in_turn,
        "rand_augment": _rand_augment,
        "with_masks": _with_masks,
    }
)
