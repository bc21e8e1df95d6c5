"""Changes of images that look at their histograms or consist of others: more rows of augment.py's table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv.images import steps
from pydtconv.images.steps import Steps, step
from pydtconv.ops.augment import (
    CHANGES,
    TRANSFORMS,
    Change,
    Generators,
    Numbers,
    changed,
    changed_masks,
    enter,
    nothing_drawn,
    through,
)
from pydtconv.ops.functions.tables.image_contrast import clahe

#: kinds with their settings, as an operator keeps them
Policies = Sequence[tuple[str, Sequence[tuple[str, Any]]]]
NOTHING = step("add", 1, where=False)
#: changes that follow each other: the place of each among the policies, and its numbers
Chain = Sequence[tuple[int, Numbers]]


def _auto_contrast(shape: Any, numbers: Numbers, value_range: Any) -> Steps:
    """Each channel of each image stretched to the whole range; one of a single value stays."""
    return step("auto_contrast", shape[0], *value_range)


def _equalization(shape: Any, numbers: Numbers, value_range: Any, bins: int) -> Steps:
    """Values by their rank among those of a channel of the image."""
    room = np.zeros(shape[0] * shape[-1] * bins)
    return step("equalize", shape[0], bins, np.arange(shape[0]) * shape[-1] * bins, *value_range, extra=room)


def _equalized(x: np.ndarray, numbers: Numbers, value_range: Any, bins: int, dy: np.ndarray | None) -> np.ndarray:
    """Values by their rank among those of a channel of the batch, as Keras has it: the batch is one image."""
    n, h, w, c = x.shape
    whole = (1, n * h, w, c)
    found = _equalization(whole, numbers, value_range, bins)
    return through(x.reshape(whole), found, None if dy is None else dy.reshape(whole)).reshape(x.shape)


def _clahe(
    x: np.ndarray, numbers: Numbers, value_range: Any, clip_limit: float, tile_grid_size: Any, dy: np.ndarray | None
) -> np.ndarray:
    """By the histograms of tiles: whole numbers, whose gradient is 0."""
    return clahe(x, value_range, clip_limit, tile_grid_size) if dy is None else np.zeros_like(dy)


def _of_all(shape: Any, rngs: Generators, policies: Policies) -> Numbers:
    return {"transforms": [CHANGES[kind].draw(shape, rngs, **dict(settings)) for kind, settings in policies]}


def _in_turn(shape: Any, numbers: Numbers, policies: Policies) -> Steps:
    """One behind the other."""
    both = zip(policies, numbers["transforms"], strict=True)
    nothing = step("add", shape[0], where=False)
    return steps.in_turn([nothing, *(_steps("steps", shape, kind, own, settings) for (kind, settings), own in both)])


def _steps(part: str, shape: Any, kind: str, numbers: Numbers, settings: Any) -> Steps:
    """What images ("steps"), or their "masks", go through."""
    own = getattr(CHANGES[kind], part)
    return NOTHING if own is None else own(shape, numbers, **dict(settings))


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


def _along(part: str, shape: Any, chain: Chain, policies: Policies) -> Steps:
    """What an image, or its mask, goes through in a chain of changes."""
    one = (1, *shape[1:])
    return steps.in_turn([NOTHING, *(_steps(part, one, policies[i][0], own, policies[i][1]) for i, own in chain)])


def _chains(shape: Any, rngs: Generators, policies: Policies, num_ops: int) -> Numbers:
    """chain_transforms: a chain for each image."""
    return {"chain_transforms": [_chain(shape, rng, policies, num_ops) for rng in rngs]}


def _rand_augment(part: str) -> Callable[..., Steps]:
    """Cubuk et al. (2020)."""

    def through(shape: Any, numbers: Numbers, policies: Policies, **_: Any) -> Steps:
        return steps.side_by_side([_along(part, shape, chain, policies) for chain in numbers["chain_transforms"]])

    return through


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

    def change(x: np.ndarray, numbers: Numbers, policies: Policies, dy: np.ndarray | None, **_: Any) -> np.ndarray:
        weights, chains = np.asarray(numbers["chain_mixing_weights"], x.dtype), numbers["chain_transforms"]
        share = np.asarray(numbers["weight_sample"], x.dtype).reshape(-1, 1, 1, 1)
        mixed = np.zeros_like(x)
        for i, own in enumerate(weights.T):
            found = steps.side_by_side([_along(part, x.shape, each[i], policies) for each in chains])
            mixed += own.reshape(-1, 1, 1, 1) * through(x, found, dy)
        return share * (x if dy is None else dy) + (1 - share) * mixed

    return change


def _with_masks(
    x: np.ndarray,
    rngs: Generators,
    kind: str,
    settings: Sequence[tuple[str, Any]],
    channels: int,
    numbers: int,
    dy: np.ndarray | None = None,
) -> np.ndarray:
    """Images of so many channels and behind them their masks, and the numbers drawn for each image as last channels."""
    own, change, end = dict(settings), CHANGES[kind], x.shape[-1] - numbers
    drawn, result = change.draw((*x.shape[:3], channels), rngs, **own), np.zeros_like(x)
    images, masks = (
        (x[..., part], None if dy is None else dy[..., part]) for part in (slice(channels), slice(channels, end))
    )
    result[..., :channels] = changed(kind, images[0], drawn, own, images[1])
    if end > channels:
        result[..., channels:end] = changed_masks(kind, masks[0], drawn, own, masks[1])
    if numbers and dy is None:
        assert change.columns is not None
        result[..., end:] = change.columns(drawn, **own)[:, None, None]
    return result


def _of_generators(draw: Callable[..., float]) -> Callable[..., np.ndarray]:
    """Numbers (n, 1, 1, 1), one of each generator."""

    def transform(x: np.ndarray, rngs: Generators, dy: np.ndarray | None = None, **settings: float) -> np.ndarray:
        if dy is not None:
            return np.zeros_like(x)
        return np.array([draw(rng, **settings) for rng in rngs]).reshape(-1, 1, 1, 1)

    return transform


def _beta_between(rng: np.random.Generator, low: float, high: float) -> float:
    """Of the beta distribution, whose two parameters are equal and drawn first."""
    alpha = rng.uniform(low, high) + 1e-6
    return rng.beta(alpha, alpha)


enter(
    {
        "aug_mix": Change(_weighted_chains, None, images=_aug_mix("steps"), mixed_masks=_aug_mix("masks")),
        "auto_contrast": Change(nothing_drawn, _auto_contrast),
        "clahe": Change(nothing_drawn, None, images=_clahe),
        "equalization": Change(nothing_drawn, _equalization, images=_equalized),
        "in_turn": Change(_of_all, _in_turn),
        "rand_augment": Change(_chains, _rand_augment("steps"), _rand_augment("masks"), _chain_columns),
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
