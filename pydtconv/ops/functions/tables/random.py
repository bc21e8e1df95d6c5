"""Random numbers, `keras.random`: arrays drawn from distributions.

A seed is None (from the process's seed, see `utils.set_random_seed`), an integer, which gives the same numbers each
time, or a `SeedGenerator`, which gives others each time.  The bits are NumPy's, not those of Keras's backends.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import config, hooks
from pydtconv.dtypes import FLOATING, converted, name_of
from pydtconv.extents import check, check_elements
from pydtconv.ops.functions.operands import is_symbolic
from pydtconv.support.random import next_seed

# fmt: off
__all__ = [
    "SeedGenerator", "beta", "binomial", "categorical", "dropout", "gamma", "normal", "randint", "shuffle",
    "truncated_normal", "uniform",
]
# fmt: on

Shape = Sequence[int]


#: held while a seed is taken, so that no two threads get the same
_counting = threading.Lock()


class SeedGenerator:
    """A row of seeds: each draw with it gives other numbers.

    state: the seed and the number of seeds given so far, a variable that can be kept and put back.
    """

    def __init__(self, seed: int | None = None, name: str | None = None, **kwargs: Any) -> None:
        if kwargs:
            raise ValueError(f"SeedGenerator: unknown arguments: {', '.join(kwargs)}")
        if seed is not None and not isinstance(seed, (int, np.integer)):
            raise ValueError(f"SeedGenerator: seed: expected an integer, got {seed!r}")
        first = next_seed() if seed is None else int(seed)
        if not 0 <= first < 2**64:
            raise ValueError(f"SeedGenerator: seed: expected an integer from 0 to 2**64 - 1, got {seed!r}")
        self._initial_seed = seed
        self.name = name or "seed_generator"
        state = np.array([first, 0], "uint32" if first < 2**32 else "uint64")
        self.state = hooks.variable(state, trainable=False, name="seed_generator_state")

    def next(self, ordered: bool = True) -> int:
        """The next seed."""
        with _counting:
            first, given = map(int, self.state.array)
            self.state.array[1] += 1
        return int(np.random.SeedSequence(first, spawn_key=(given,)).generate_state(1)[0])

    def get_config(self) -> dict[str, Any]:
        return {"seed": self._initial_seed, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeedGenerator:
        return cls(**config)


SeedGenerator.__module__ = "pydtconv.random"  # by which files know it


def generator(seed: Any) -> np.random.Generator:
    """What draws for a seed."""
    if isinstance(seed, SeedGenerator):
        seed = seed.next()
    if seed is not None and not isinstance(seed, (int, np.integer)):
        raise ValueError(f"seed: expected None, an integer or a SeedGenerator, got {seed!r}")
    return np.random.default_rng(next_seed() if seed is None else int(seed))


def _extents(shape: Sequence[Any]) -> tuple[int, ...]:
    """The shape of what is drawn.  Raises ValueError for what is none, or too large."""
    check("shape", found := tuple(shape), least=0)
    check_elements("shape", found)
    return found


def _float(dtype: Any) -> str:
    return config.floatx() if dtype is None else name_of(dtype)


def normal(shape: Shape, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None) -> np.ndarray:
    """Normally distributed numbers."""
    return converted(generator(seed).normal(mean, stddev, _extents(shape)), _float(dtype))


def uniform(shape: Shape, minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: Any = None) -> np.ndarray:
    """Numbers from minval up to maxval."""
    if _float(dtype) not in FLOATING:
        raise ValueError(f"uniform: dtype: expected a float, got {dtype!r}: use randint for integers")
    return converted(generator(seed).uniform(minval, maxval, _extents(shape)), _float(dtype))


def randint(shape: Shape, minval: int, maxval: int, dtype: Any = "int32", seed: Any = None) -> np.ndarray:
    """Integers from minval up to maxval - 1."""
    if np.dtype(name_of(dtype)).kind not in "iu":
        raise ValueError(f"randint: dtype: expected an integer one, got {dtype!r}: use uniform for floats")
    return generator(seed).integers(minval, maxval, _extents(shape)).astype(name_of(dtype))


def truncated_normal(
    shape: Shape, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None
) -> np.ndarray:
    """Normally distributed numbers, those beyond two deviations drawn again."""
    rng = generator(seed)
    values = rng.standard_normal(_extents(shape))
    while (far := np.abs(values) > 2).any():
        values[far] = rng.standard_normal(int(far.sum()))
    return converted(mean + stddev * values, _float(dtype))


def beta(shape: Shape, alpha: Any, beta: Any, dtype: Any = None, seed: Any = None) -> np.ndarray:
    """Numbers of the beta distribution."""
    return converted(generator(seed).beta(alpha, beta, _extents(shape)), _float(dtype))


def gamma(shape: Shape, alpha: Any, dtype: Any = None, seed: Any = None) -> np.ndarray:
    """Numbers of the gamma distribution of scale 1."""
    return converted(generator(seed).gamma(alpha, size=_extents(shape)), _float(dtype))


def binomial(shape: Shape, counts: Any, probabilities: Any, dtype: Any = None, seed: Any = None) -> np.ndarray:
    """How many of `counts` trials succeed."""
    values = generator(seed).binomial(np.asarray(counts).astype("int64"), np.asarray(probabilities), _extents(shape))
    return converted(values, _float(dtype))


def categorical(logits: Any, num_samples: int, dtype: Any = "int32", seed: Any = None) -> np.ndarray:
    """(n, num_samples) classes for logits (n, classes)."""
    logits = np.asarray(logits)
    if logits.ndim != 2:
        raise ValueError(f"categorical: logits: expected (n, classes), got shape {logits.shape}")
    noise = generator(seed).gumbel(size=_extents((logits.shape[0], num_samples, logits.shape[1])))
    return np.argmax(logits[:, None, :] + noise, -1).astype(name_of(dtype))


def shuffle(x: Any, axis: int = 0, seed: Any = None) -> np.ndarray:
    """An array with its parts along an axis in another order."""
    return generator(seed).permutation(np.asarray(x), axis)


def dropout(inputs: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Any:
    """inputs with a share of the elements set to zero, the others divided by what is left."""
    from pydtconv.ops.random import Dropout

    if rate == 1 and not is_symbolic(inputs):
        return np.zeros_like(inputs)
    if not 0 <= rate < 1:
        raise ValueError(f"dropout: rate: expected a number from 0 up to 1, got {rate}")
    if is_symbolic(inputs) or (hooks.graph_of_draws() is not None and np.asarray(inputs).dtype.kind == "f"):
        own = None if seed is None or isinstance(seed, SeedGenerator) else int(seed)
        return Dropout(rate, noise_shape=None if noise_shape is None else tuple(noise_shape), seed=own, always=True)(
            inputs
        )
    x = np.asarray(inputs)
    shape = Dropout(rate, noise_shape=noise_shape).mask_shape(x.shape)
    kept = generator(seed).random(_extents(shape)) >= rate
    return np.where(kept, x / (1 - rate), 0).astype(x.dtype)
