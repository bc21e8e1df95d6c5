"""Functions of `tf.random`, by those of `pydtconv.random`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import ops
from pydtconv import random as random_module
from pydtconv.compat.tensorflow.arrays import array, name_of


def normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = "float32", seed: Any = None, name: Any = None
) -> Any:
    """Normally distributed numbers; others at each run of what is traced."""
    return array(random_module.normal(tuple(shape), mean, stddev, name_of(dtype), seed))


def truncated_normal(
    shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = "float32", seed: Any = None, name: Any = None
) -> Any:
    """Normally distributed numbers within two deviations."""
    return array(random_module.truncated_normal(tuple(shape), mean, stddev, name_of(dtype), seed))


def uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32", seed: Any = None, name: Any = None
) -> Any:
    """Numbers from minval up to maxval; integers where the dtype is one."""
    kind = name_of(dtype)
    if np.dtype(kind).kind in "iu":
        if maxval is None:
            raise ValueError("tf.random.uniform: maxval: expected a number for integers, got None")
        return array(random_module.randint(tuple(shape), int(minval), int(maxval), kind, seed))
    top = 1.0 if maxval is None else maxval
    return array(random_module.uniform(tuple(shape), minval, top, kind, seed))


def shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Any:
    """The parts along the first axis in another order."""
    return array(random_module.shuffle(value, 0, seed))


def gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = "float32", seed: int | None = None, name: str | None = None
) -> Any:
    """Numbers of the gamma distribution, divided by beta where that is given; behind the shape are alpha's axes."""
    draws = [
        random_module.gamma(tuple(shape), float(a), name_of(dtype), None if seed is None else seed + i)
        for i, a in enumerate(np.reshape(alpha, -1))
    ]
    found = ops.reshape(ops.stack(draws, axis=-1), (*shape, *np.shape(alpha)))
    return array(found if beta is None else found / beta)


def table() -> dict[str, Any]:
    """The names of `tf.random`, but for `set_seed`."""
    own = normal, truncated_normal, uniform, shuffle, gamma
    return {each.__name__: each for each in own} | {"categorical": random_module.categorical}
