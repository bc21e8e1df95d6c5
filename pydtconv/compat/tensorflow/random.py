"""Functions of `tf.random`, by those of `pydtconv.random`: other numbers than TensorFlow's, the same for each seed."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv import random as random_module
from pydtconv.compat.tensorflow.arrays import array, name_of
from pydtconv.compat.tensorflow.open_extents import recorded
from pydtconv.support.random import next_seed, set_random_seed


def _extents(shape: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in np.reshape(shape, -1))


def normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = "float32", seed: Any = None, name: Any = None
) -> Any:
    """Normally distributed numbers; others at each run of what is traced."""
    return array(random_module.normal(_extents(shape), mean, stddev, name_of(dtype), seed))


def truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = "float32", seed: Any = None, name: Any = None
) -> Any:
    """Normally distributed numbers within two deviations."""
    return array(random_module.truncated_normal(_extents(shape), mean, stddev, name_of(dtype), seed))


def uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32", seed: Any = None, name: Any = None
) -> Any:
    """Numbers from minval up to maxval; integers where the dtype is one."""
    kind = name_of(dtype)
    if np.dtype(kind).kind in "iu":
        if maxval is None:
            raise ValueError("tf.random.uniform: maxval: expected a number for integers, got None")
        return array(random_module.randint(_extents(shape), int(minval), int(maxval), kind, seed))
    top = 1.0 if maxval is None else maxval
    return array(random_module.uniform(_extents(shape), minval, top, kind, seed))


def shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Any:
    """The parts along the first axis in another order."""
    return array(random_module.shuffle(value, 0, seed))


def gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = "float32", seed: int | None = None, name: str | None = None
) -> Any:
    """Numbers of the gamma distribution, divided by beta where that is given; behind the shape are alpha's axes."""
    draws = [
        random_module.gamma(_extents(shape), float(a), name_of(dtype), None if seed is None else seed + i)
        for i, a in enumerate(np.reshape(alpha, -1))
    ]
    found = ops.reshape(ops.stack(draws, axis=-1), (*_extents(shape), *np.shape(alpha)))
    return array(found if beta is None else found / beta)


def poisson(shape: Any, lam: Any, dtype: Any = "float32", seed: int | None = None, name: str | None = None) -> Any:
    """Numbers of the Poisson distribution, of arrays; behind the shape are lam's axes."""
    rng = np.random.default_rng(next_seed() if seed is None else seed)
    return array(rng.poisson(np.asarray(lam), (*_extents(shape), *np.shape(lam))), name_of(dtype))


def categorical(
    logits: Any, num_samples: int, dtype: Any = None, seed: int | None = None, name: str | None = None
) -> Any:
    """(n, num_samples) classes for logits (n, classes)."""
    return array(random_module.categorical(logits, int(num_samples), name_of(dtype or "int64"), seed))


def binomial(shape: Any, seed: int | None, counts: Any, probs: Any, dtype: Any = "int32") -> Any:
    """How many of so many trials succeed."""
    return array(random_module.binomial(_extents(shape), counts, probs, name_of(dtype), seed))


# --- without a state --------------------------------------------------------------------------------------------------


def number_of(seed: Any) -> int:
    """One number of the two of a seed, which are values: a step that is traced would draw the same ones each time."""
    return zlib.crc32(np.asarray(seed, "int64").tobytes())


def _stateless(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the seed behind the shape; a seed gives the same numbers each time."""

    @functools.wraps(function)
    def stateless(shape: Any, seed: Any, *args: Any, alg: Any = None, **kwargs: Any) -> Any:
        return function(shape, *args, seed=number_of(seed), **kwargs)

    return stateless


def stateless_binomial(
    shape: Any, seed: Any, counts: Any, probs: Any, output_dtype: Any = "int32", name: str | None = None
) -> Any:
    return binomial(shape, number_of(seed), counts, probs, output_dtype)


def stateless_categorical(
    logits: Any, num_samples: int, seed: Any, dtype: Any = "int64", name: str | None = None
) -> Any:
    return categorical(logits, num_samples, dtype, number_of(seed))


def split(seed: Any, num: int = 2, alg: Any = None) -> Any:
    """Other seeds (num, 2)."""
    return array(np.random.default_rng(number_of(seed)).integers(0, 2**31, (int(num), 2)), "int32")


def fold_in(seed: Any, data: Any, alg: Any = None) -> Any:
    """The seed that a seed and a number make."""
    drawn = np.random.default_rng([number_of(seed), int(data) & 0xFFFFFFFF]).integers(0, 2**31, 2)
    return array(drawn, np.asarray(seed).dtype.name)


class Generator:
    """Random numbers one behind the other, from a seed."""

    def __init__(self, seed: Any = None, **kwargs: Any) -> None:
        self.reset_from_seed(next_seed() if seed is None else seed)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """One of a seed."""
        return cls(number_of(seed) if np.ndim(seed) else int(seed))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """One that begins somewhere."""
        return cls()

    def reset_from_seed(self, seed: Any) -> None:
        """Begins anew."""
        self._rng = np.random.default_rng(int(seed))

    def _next(self) -> int:
        return int(self._rng.integers(2**31))

    def normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32", name: Any = None) -> Any:
        return normal(shape, mean, stddev, dtype, self._next())

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32", name: Any = None
    ) -> Any:
        return truncated_normal(shape, mean, stddev, dtype, self._next())

    def uniform(self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32", name: Any = None) -> Any:
        return uniform(shape, minval, maxval, dtype, self._next())

    def binomial(self, shape: Any, counts: Any, probs: Any, dtype: Any = "int32", name: Any = None) -> Any:
        return binomial(shape, self._next(), counts, probs, dtype)

    def uniform_full_int(self, shape: Any, dtype: Any = "uint64", name: Any = None) -> Any:
        kind = np.dtype(name_of(dtype))
        drawn = np.random.default_rng(self._next()).integers(0, 256, (*_extents(shape), kind.itemsize), "uint8")
        return array(drawn.view(kind)[..., 0])

    def make_seeds(self, count: int = 1) -> Any:
        """Seeds (2, count)."""
        return array(self._rng.integers(0, 2**31, (2, int(count))), "int64")

    def split(self, count: int = 1) -> list[Generator]:
        """Others, each with numbers of its own."""
        return [Generator(self._next()) for _ in range(int(count))]

    def skip(self, delta: int) -> None:
        """Leaves numbers out."""
        self._rng.integers(2**31, size=int(delta))


_global: list[Generator] = []


def get_global_generator() -> Generator:
    """The generator of the process."""
    if not _global:
        _global.append(Generator())
    return _global[0]


def set_global_generator(generator: Generator) -> None:
    """Makes one that of the process."""
    _global[:] = [generator]


class Algorithm:
    """Names of ways to make random numbers; there is one here."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def experimental() -> dict[str, Any]:
    """The names of `tf.random.experimental`."""
    own = Generator, Algorithm, get_global_generator, set_global_generator
    return {**{each.__name__: each for each in own}, "stateless_split": split, "stateless_fold_in": fold_in}


def table() -> dict[str, Any]:
    """The names of `tf.random`."""
    own = (
        normal, truncated_normal, uniform, shuffle, gamma, poisson, categorical, stateless_binomial,
        stateless_categorical, split, fold_in, Generator, Algorithm, get_global_generator, set_global_generator,
    )  # fmt: skip
    drawn = (normal, truncated_normal, uniform, gamma, poisson)
    stateless = {f"stateless_{each.__name__}": _stateless(each) for each in drawn}
    named = {each.__name__: each for each in own}
    return {**named, **recorded({each.__name__: each for each in drawn} | stateless), "set_seed": set_random_seed}
