"""Initializers that draw from a distribution of their own, or an orthogonal matrix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pydtconv import config
from pydtconv.dtypes import name_of
from pydtconv.initializers.initializer import Initializer, Shape
from pydtconv.serialization.objects import serialize_keras_object
from pydtconv.support.random import next_seed

if TYPE_CHECKING:
    from pydtconv.ops.functions.tables.random import SeedGenerator


class RandomInitializer(Initializer):
    """Base of those that draw random numbers.

    seed: an integer, with which each call gives the same numbers, or a `random.SeedGenerator`, with which it gives new
    ones.
    """

    def __init__(self, seed: Any = None) -> None:
        self._given_seed = seed
        self.seed = next_seed() if seed is None else seed if hasattr(seed, "next") else _plain_seed(seed)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self.seed.next() if hasattr(self.seed, "next") else self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"seed": serialize_keras_object(self._given_seed)}


class RandomNormal(RandomInitializer):
    """Normal distribution."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | SeedGenerator | None = None) -> None:
        self.mean = mean
        self.stddev = stddev
        super().__init__(seed)

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        return self._generator().normal(self.mean, self.stddev, tuple(shape)).astype(name_of(dtype or config.floatx()))

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, **super().get_config()}


class RandomUniform(RandomInitializer):
    """Uniform distribution on [minval, maxval)."""

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: int | SeedGenerator | None = None) -> None:
        self.minval = minval
        self.maxval = maxval
        super().__init__(seed)

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        values = self._generator().uniform(self.minval, self.maxval, tuple(shape))
        return values.astype(name_of(dtype or config.floatx()))

    def get_config(self) -> dict[str, Any]:
        return {"minval": self.minval, "maxval": self.maxval, **super().get_config()}


class TruncatedNormal(RandomInitializer):
    """Normal distribution cut off at two standard deviations; what falls outside is drawn again."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | SeedGenerator | None = None) -> None:
        self.mean = mean
        self.stddev = stddev
        super().__init__(seed)

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        standard = standard_truncated_normal(self._generator(), tuple(shape))
        return (self.mean + self.stddev * standard).astype(name_of(dtype or config.floatx()))

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, **super().get_config()}


class Orthogonal(RandomInitializer):
    """gain times a random matrix with orthonormal columns (or rows, where there are fewer).

    Saxe et al. (ICLR 2014).  A shape of higher rank is taken as the matrix (product of all but the last, last).
    """

    def __init__(self, gain: float = 1.0, seed: int | SeedGenerator | None = None) -> None:
        self.gain = gain
        super().__init__(seed)

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        if len(shape) < 2:
            raise ValueError(f"Orthogonal initializer: expected a shape of rank 2 or more, got {tuple(shape)}")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        q, r = np.linalg.qr(self._generator().normal(size=(max(rows, columns), min(rows, columns))))
        # the signs of R's diagonal make the distribution uniform over the orthogonal matrices
        q = q * np.sign(np.diag(r))
        q = q.T if rows < columns else q
        return (self.gain * q.reshape(tuple(shape))).astype(name_of(dtype or config.floatx()))

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, **super().get_config()}


#: the standard deviation of a standard normal distribution cut off at +-2
TRUNCATED_STDDEV = math.sqrt(1 - 4 * math.exp(-2) / (math.sqrt(2 * math.pi) * math.erf(math.sqrt(2))))


def standard_truncated_normal(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Standard normal values cut off at +-2: what falls outside is drawn again."""
    values = generator.normal(size=shape)
    flat = values.reshape(-1)
    outside = np.flatnonzero(np.abs(flat) > 2)
    while outside.size:
        flat[outside] = generator.normal(size=outside.size)
        outside = outside[np.abs(flat[outside]) > 2]
    return flat.reshape(shape)


def _plain_seed(seed: Any) -> int:
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0:
        return int(seed)
    raise ValueError(f"initializer: seed: expected an integer of 0 or more, or a SeedGenerator, got {seed!r}")
