"""Changes of images that look at their histograms or consist of others: more rows of augment.py's table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv.ops.augment import TRANSFORMS, Generators
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


def _chosen(x: np.ndarray, rng: np.random.Generator, policies: Policies, depth: int) -> np.ndarray:
    """One image (1, h, w, c), changed by so many that are drawn."""
    for _ in range(depth):
        kind, settings = policies[int(rng.integers(len(policies)))]
        x = TRANSFORMS[kind](x, [rng], **dict(settings))
    return x


def _rand_augment(x: np.ndarray, rngs: Generators, policies: Policies, num_ops: int) -> np.ndarray:
    """Cubuk et al. (2020)."""
    return np.concatenate([_chosen(x[i : i + 1], rng, policies, num_ops) for i, rng in enumerate(rngs)])


def _aug_mix(
    x: np.ndarray, rngs: Generators, policies: Policies, num_chains: int, chain_depth: int, alpha: float
) -> np.ndarray:
    """m x + (1 - m) sum(w_i chain_i(x)), w of Dirichlet's, m of the beta distribution; Hendrycks et al. (2020)."""
    found = []
    for i, rng in enumerate(rngs):
        image, weights, share = x[i : i + 1], rng.dirichlet([alpha] * num_chains), rng.beta(alpha, alpha)
        chains = [_chosen(image, rng, policies, int(rng.integers(1, chain_depth + 1))) for _ in range(num_chains)]
        mixed = sum(weight * chain for weight, chain in zip(weights, chains, strict=True))
        found.append(share * image + (1 - share) * mixed)
    return np.concatenate(found)


def _perspective(
    x: np.ndarray, rngs: Generators, factor: Any, scale: float, interpolation: str, fill_value: float
) -> np.ndarray:
    """The corners moved by up to half of scale of their distance from the first one."""
    right, bottom = x.shape[2] - 1, x.shape[1] - 1
    corners = np.array([[0, 0], [right, 0], [0, bottom], [right, bottom]], np.float64)
    result = np.array(x)
    for i, rng in enumerate(rngs):
        if rng.random() < rng.uniform(*factor):
            ends = corners * (1 + rng.uniform(-0.5 * scale, 0.5 * scale, (4, 2)))
            result[i] = image_geometry.perspective_transform(
                x[i], corners, ends, interpolation, fill_value, "channels_last"
            )
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
        "perspective": _perspective,
        "rand_augment": _rand_augment,
    }
)
