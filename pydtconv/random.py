"""`keras.random`: random numbers.

Outside of layers these are arrays.  In a layer's `call`, and in code that is traced, they are drawn anew in each step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import config, ops
from pydtconv.dtypes import BFLOAT16, name_of, real
from pydtconv.graph.ir.graph import current_graph
from pydtconv.hooks import returning
from pydtconv.ops.functions.tables import random
from pydtconv.ops.functions.tables.random import SeedGenerator
from pydtconv.suggest import refusal

# fmt: off
__all__ = [
    "SeedGenerator", "beta", "binomial", "categorical", "dropout", "gamma", "normal", "randint", "shuffle",
    "truncated_normal", "uniform",
]
# fmt: on


def _noise(shape: Sequence[int], dtype: Any, seed: Any) -> Any:
    """A tensor of the graph that is traced, normally distributed, other numbers in each step; None without a graph."""
    graph = current_graph()
    if graph is None:
        return None
    own = int(seed) if isinstance(seed, (int, np.integer)) else None
    kind = config.floatx() if dtype is None else real(name_of(dtype))
    zeros = graph.constant(np.zeros(tuple(shape)), kind, tuple(shape))
    return ops.GaussianNoise(1.0, seed=own, always=True)(zeros)


def _drawn(kind: str, shape: Sequence[int], dtype: Any, seed: Any, **parameters: Any) -> Any:
    """The same, of another distribution, whose parameters are numbers."""
    graph = current_graph()
    if graph is None:
        return None
    for name, value in parameters.items():
        if not isinstance(value, (int, float, np.number)) or isinstance(value, bool):
            raise NotImplementedError(f"random.{kind}: {name}: expected a number, where code is traced, got {value!r}")
    own = int(seed) if isinstance(seed, (int, np.integer)) else None
    dtype = config.floatx() if dtype is None else name_of(dtype)
    zeros = graph.constant(np.zeros((math.prod(shape), 1, 1, 1)), config.floatx(), (math.prod(shape), 1, 1, 1))
    settings = tuple((name, float(value)) for name, value in parameters.items())
    return ops.cast(ops.reshape(ops.Augment(kind, settings, own)(zeros), tuple(shape)), dtype)


def normal(shape: Sequence[int], mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Normally distributed numbers."""
    y = _noise(shape, dtype, seed)
    return random.normal(shape, mean, stddev, dtype, seed) if y is None else _in_dtype(y * stddev + mean, dtype)


def _uniform(shape: Sequence[int], dtype: Any, seed: Any) -> Any:
    y = _noise(shape, dtype, seed)
    if y is None:
        return None
    y = (ops.erf(y * math.sqrt(0.5)) + 1.0) * 0.5
    rounds = dtype is not None and name_of(dtype) == BFLOAT16
    return ops.floor(y * 256.0) * 2.0**-8 if rounds else y  # what is just below 1 would be 1


def _in_dtype(y: Any, dtype: Any) -> Any:
    return y if dtype is None else ops.cast(y, dtype)


def uniform(shape: Sequence[int], minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: Any = None) -> Any:
    """Numbers from minval up to maxval."""
    y = _uniform(shape, dtype, seed)
    if y is None:
        return random.uniform(shape, minval, maxval, dtype, seed)
    return _in_dtype(y * (maxval - minval) + minval, dtype)


def randint(shape: Sequence[int], minval: int, maxval: int, dtype: Any = "int32", seed: Any = None) -> Any:
    """Integers from minval up to maxval - 1."""
    y = _uniform(shape, None, seed)
    if y is None:
        return random.randint(shape, minval, maxval, dtype, seed)
    return ops.cast(ops.minimum(ops.floor(y * (maxval - minval)) + minval, maxval - 1), dtype)


def truncated_normal(
    shape: Sequence[int], mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None
) -> Any:
    """Normally distributed numbers within two deviations."""
    y = _uniform(shape, None if dtype is None else real(name_of(dtype)), seed)
    if y is None:
        return random.truncated_normal(shape, mean, stddev, dtype, seed)
    edge = math.erf(math.sqrt(2.0))
    return _in_dtype(ops.erfinv((y * 2.0 - 1.0) * edge) * (math.sqrt(2.0) * stddev) + mean, dtype)


def dropout(inputs: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Any:
    """inputs with a share of the elements set to zero, the others divided by what is left."""
    return random.dropout(inputs, rate, noise_shape, seed)


def beta(shape: Sequence[int], alpha: Any, beta: Any, dtype: Any = None, seed: Any = None) -> Any:
    """Numbers of the beta distribution."""
    y = _drawn("beta", shape, dtype, seed, alpha=alpha, beta=beta)
    return random.beta(shape, alpha, beta, dtype, seed) if y is None else y


def gamma(shape: Sequence[int], alpha: Any, dtype: Any = None, seed: Any = None) -> Any:
    """Numbers of the gamma distribution of scale 1."""
    y = _drawn("gamma", shape, dtype, seed, alpha=alpha)
    return random.gamma(shape, alpha, dtype, seed) if y is None else y


def binomial(shape: Sequence[int], counts: Any, probabilities: Any, dtype: Any = None, seed: Any = None) -> Any:
    """How many of `counts` trials succeed."""
    y = _drawn("binomial", shape, dtype, seed, counts=counts, probabilities=probabilities)
    return random.binomial(shape, counts, probabilities, dtype, seed) if y is None else y


def categorical(logits: Any, num_samples: int, dtype: Any = "int32", seed: Any = None) -> Any:
    """(n, num_samples) classes for logits (n, classes)."""
    if current_graph() is None:
        return random.categorical(logits, num_samples, dtype, seed)
    if len(logits.shape) != 2:
        raise ValueError(f"categorical: logits: expected (n, classes), got shape {tuple(logits.shape)}")
    uniform = _uniform((logits.shape[0], num_samples, logits.shape[1]), None, seed)
    gumbel = -ops.log(-ops.log(ops.clip(uniform, 1e-7, 1.0 - 1e-7)))
    return ops.cast(ops.argmax(gumbel + ops.expand_dims(logits, 1), axis=-1), dtype)


def shuffle(x: Any, axis: int = 0, seed: Any = None) -> Any:
    """An array with its parts along an axis in another order."""
    if current_graph() is None:
        return random.shuffle(x, axis, seed)
    return ops.take(x, ops.argsort(_noise((x.shape[axis],), None, seed)), axis=axis)


globals().update({name: returning(globals()[name]) for name in __all__ if name != "SeedGenerator"})

__getattr__ = refusal(__name__, __all__)
