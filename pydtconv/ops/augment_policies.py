"""Changes of images that look at their histograms or consist of others: more rows of augment.py's table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv.ops.augment import CHANGES, TRANSFORMS, Change, Generators, Numbers, enter
from pydtconv.ops.functions.tables.image_contrast import clahe

#: kinds with their settings, as an operator keeps them
Policies = Sequence[tuple[str, Sequence[tuple[str, Any]]]]
#: changes that follow each other: the place of each among the policies, and its numbers
Chain = Sequence[tuple[int, Numbers]]


def _auto_contrast(x: np.ndarray, numbers: Numbers, value_range: Any) -> np.ndarray:
    """Each channel of each image stretched to the whole range; one of a single value stays."""
    low, high = x.min((1, 2), keepdims=True), x.max((1, 2), keepdims=True)
    first, last = value_range
    with np.errstate(all="ignore"):
        stretched = np.clip((x - low) * ((last - first) / (high - low)) + first, first, last)
    return np.where(high > low, stretched, x)


def _equalization(x: np.ndarray, numbers: Numbers, value_range: Any, bins: int) -> np.ndarray:
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


def _clahe(x: np.ndarray, numbers: Numbers, value_range: Any, clip_limit: float, tile_grid_size: Any) -> np.ndarray:
    """By the histograms of tiles."""
    return clahe(x, value_range, clip_limit, tile_grid_size)


def _nothing(shape: Any, rngs: Generators, **_: Any) -> Numbers:
    return {}


def _of_all(shape: Any, rngs: Generators, policies: Policies) -> Numbers:
    return {"transforms": [CHANGES[kind].draw(shape, rngs, **dict(settings)) for kind, settings in policies]}


def _in_turn(x: np.ndarray, numbers: Numbers, policies: Policies) -> np.ndarray:
    """One behind the other."""
    for (kind, settings), own in zip(policies, numbers["transforms"], strict=True):
        x = CHANGES[kind].images(x, own, **dict(settings))
    return x


#: the kinds of changes that move pixels, by the number that tells them apart to those who move boxes
CODES = {"rotation": 1, "shear": 2, "translation": 3}
#: numbers of a change: its code, and up to two of its own
PER_CHANGE = 3


def _chain(shape: Any, rng: np.random.Generator, policies: Policies, depth: int) -> Chain:
    """So many changes of one image."""
    found = []
    for _ in range(depth):
        index = int(rng.integers(len(policies)))
        kind, settings = policies[index]
        found.append((index, CHANGES[kind].draw((1, *shape[1:]), [rng], **dict(settings))))
    return found


def _along(part: str, x: np.ndarray, chain: Chain, policies: Policies) -> np.ndarray:
    """An image (1, h, w, c), or its mask, after a chain of changes.  part: "images" or "masks"."""
    for index, numbers in chain:
        kind, settings = policies[index]
        x = getattr(CHANGES[kind], part)(x, numbers, **dict(settings))
    return x


def _chains(shape: Any, rngs: Generators, policies: Policies, num_ops: int) -> Numbers:
    """chain_transforms: a chain for each image."""
    return {"chain_transforms": [_chain(shape, rng, policies, num_ops) for rng in rngs]}


def _rand_augment(part: str) -> Callable[..., np.ndarray]:
    """Cubuk et al. (2020)."""

    def change(x: np.ndarray, numbers: Numbers, policies: Policies, **_: Any) -> np.ndarray:
        chains = enumerate(numbers["chain_transforms"])
        return np.concatenate([_along(part, x[i : i + 1], chain, policies) for i, chain in chains])

    return change


def _chain_columns(numbers: Numbers, policies: Policies, **_: Any) -> np.ndarray:
    """PER_CHANGE numbers of each change of an image."""
    chains = numbers["chain_transforms"]
    found = np.zeros((len(chains), len(chains[0]) if chains else 0, PER_CHANGE))
    for row, chain in zip(found, chains, strict=True):
        for column, (index, own) in zip(row, chain, strict=True):
            kind, settings = policies[index]
            columns = CHANGES[kind].columns
            if columns is not None:
                moves = columns(own, **dict(settings))[0]
                column[0], column[1 : 1 + moves.size] = CODES[kind], moves
    return found.reshape(len(found), -1)


def _weighted_chains(
    shape: Any, rngs: Generators, policies: Policies, num_chains: int, chain_depth: int, alpha: float
) -> Numbers:
    """chain_transforms: chains for each image; chain_mixing_weights: of each chain; weight_sample: of the image."""
    weights, shares, chains = [], [], []
    for rng in rngs:
        weights.append(rng.dirichlet([alpha] * num_chains))
        shares.append(rng.beta(alpha, alpha))
        chains.append([_chain(shape, rng, policies, int(rng.integers(1, chain_depth + 1))) for _ in range(num_chains)])
    return {
        "chain_mixing_weights": np.array(weights),
        "weight_sample": np.array(shares),
        "chain_transforms": chains,
    }


def _aug_mix(part: str) -> Callable[..., np.ndarray]:
    """m x + (1 - m) sum(w_i chain_i(x)), w of Dirichlet's, m of the beta distribution; Hendrycks et al. (2020)."""

    def change(x: np.ndarray, numbers: Numbers, policies: Policies, **_: Any) -> np.ndarray:
        result = np.empty_like(x)
        drawn = zip(
            *(numbers[name] for name in ("chain_mixing_weights", "weight_sample", "chain_transforms")), strict=True
        )
        for i, (weights, share, chains) in enumerate(drawn):
            own = x[i : i + 1]
            mixed = sum(w * _along(part, own, chain, policies) for w, chain in zip(weights, chains, strict=True))
            result[i] = (share * own + (1 - share) * mixed)[0]
        return result

    return change


def _with_masks(
    x: np.ndarray, rngs: Generators, kind: str, settings: Sequence[tuple[str, Any]], channels: int, numbers: int
) -> np.ndarray:
    """Images of so many channels and behind them their masks, and the numbers drawn for each image as last channels."""
    own, change, end = dict(settings), CHANGES[kind], x.shape[-1] - numbers
    drawn, result = change.draw((*x.shape[:3], channels), rngs, **own), np.array(x)
    result[..., :channels] = change.images(x[..., :channels], drawn, **own)
    if end > channels:
        result[..., channels:end] = change.masks(x[..., channels:end], drawn, **own)
    if numbers:
        assert change.columns is not None
        result[..., end:] = change.columns(drawn, **own)[:, None, None]
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


enter(
    {
        "aug_mix": Change(_weighted_chains, _aug_mix("images"), _aug_mix("masks")),
        "auto_contrast": Change(_nothing, _auto_contrast),
        "clahe": Change(_nothing, _clahe),
        "equalization": Change(_nothing, _equalization),
        "in_turn": Change(_of_all, _in_turn),
        "rand_augment": Change(_chains, _rand_augment("images"), _rand_augment("masks"), _chain_columns),
    }
)
TRANSFORMS.update(
    {
        "beta": _of_generators(lambda rng, alpha, beta: rng.beta(alpha, beta)),
        "beta_between": _of_generators(_beta_between),
        "binomial": _of_generators(lambda rng, counts, probabilities: rng.binomial(int(counts), probabilities)),
        "gamma": _of_generators(lambda rng, alpha: rng.gamma(alpha)),
        "with_masks": _with_masks,
    }
)
