"""Initializers: what the weights of a layer are before training.

An initializer is a callable (shape, dtype) -> array.  A random one draws the same values each time it is called, from
its `seed` or, without one, from a seed that it took from `utils.set_random_seed`'s sequence when it was made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.saving.registry import Registry
from pydtconv.utils.random import next_seed

Shape = Sequence[int]


class Initializer:
    """Base of all initializers."""

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        """An array of this shape; dtype defaults to config.floatx()."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        return cls(**config)

    def clone(self) -> Initializer:
        return type(self).from_config(self.get_config())


class Zeros(Initializer):
    """All 0."""

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        return np.zeros(shape, dtype or config.floatx())


class Ones(Initializer):
    """All 1."""

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        return np.ones(shape, dtype or config.floatx())


class Constant(Initializer):
    """All equal to value (a number, or an array that can be broadcast to the shape)."""

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        return np.full(tuple(shape), self.value, dtype or config.floatx())

    def get_config(self) -> dict[str, Any]:
        return {"value": np.asarray(self.value).tolist()}


class Identity(Initializer):
    """gain times the identity matrix; for matrices only."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        if len(shape) != 2:
            raise ValueError(f"Identity initializer: expected a shape of rank 2, got {tuple(shape)}")
        return self.gain * np.eye(shape[0], shape[1], dtype=dtype or config.floatx())

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain}


class RandomInitializer(Initializer):
    """Base of those that draw random numbers."""

    def __init__(self, seed: int | None = None) -> None:
        self._given_seed = seed
        self.seed = next_seed() if seed is None else _plain_seed(seed)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

    def get_config(self) -> dict[str, Any]:
        return {"seed": self._given_seed}


class RandomNormal(RandomInitializer):
    """Normal distribution."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        self.mean = mean
        self.stddev = stddev
        super().__init__(seed)

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        return self._generator().normal(self.mean, self.stddev, tuple(shape)).astype(dtype or config.floatx())

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, **super().get_config()}


class RandomUniform(RandomInitializer):
    """Uniform distribution on [minval, maxval)."""

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None) -> None:
        self.minval = minval
        self.maxval = maxval
        super().__init__(seed)

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        return self._generator().uniform(self.minval, self.maxval, tuple(shape)).astype(dtype or config.floatx())

    def get_config(self) -> dict[str, Any]:
        return {"minval": self.minval, "maxval": self.maxval, **super().get_config()}


class TruncatedNormal(RandomInitializer):
    """Normal distribution cut off at two standard deviations; what falls outside is drawn again."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        self.mean = mean
        self.stddev = stddev
        super().__init__(seed)

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        standard = _truncated_normal(self._generator(), tuple(shape))
        return (self.mean + self.stddev * standard).astype(dtype or config.floatx())

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, **super().get_config()}


class VarianceScaling(RandomInitializer):
    """Variance scale / n, where n is the number of inputs ("fan_in"), outputs ("fan_out") or their mean ("fan_avg").

    distribution: "truncated_normal" (with this variance after it is cut off), "untruncated_normal" or "uniform" on
    [-limit, limit) with limit = sqrt(3 scale / n).  input_axes, output_axes: the axes whose extents make the fans, for
    weights that are not laid out as (..., inputs, outputs).
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        input_axes: Sequence[int] | None = None,
        output_axes: Sequence[int] | None = None,
    ) -> None:
        distribution = distribution.lower()
        distribution = "truncated_normal" if distribution == "normal" else distribution
        if scale <= 0:
            raise ValueError(f"VarianceScaling: scale: expected a positive number, got {scale!r}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"VarianceScaling: mode: expected 'fan_in', 'fan_out' or 'fan_avg', got {mode!r}")
        if distribution not in ("truncated_normal", "untruncated_normal", "uniform"):
            raise ValueError(
                "VarianceScaling: distribution: expected 'truncated_normal', 'untruncated_normal' or 'uniform', "
                f"got {distribution!r}"
            )
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.input_axes = input_axes
        self.output_axes = output_axes
        super().__init__(seed)

    def __call__(self, shape: Shape, dtype: str | None = None) -> np.ndarray:
        shape = tuple(shape)
        fan_in, fan_out = compute_fans(shape, self.input_axes, self.output_axes)
        n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, n)
        generator = self._generator()
        if self.distribution == "uniform":
            limit = math.sqrt(3 * variance)
            values = generator.uniform(-limit, limit, shape)
        elif self.distribution == "untruncated_normal":
            values = generator.normal(0.0, math.sqrt(variance), shape)
        else:
            values = _truncated_normal(generator, shape) * (math.sqrt(variance) / _TRUNCATED_STDDEV)
        return values.astype(dtype or config.floatx())

    def get_config(self) -> dict[str, Any]:
        if type(self) is not VarianceScaling:
            own: dict[str, Any] = {}
        else:
            own = {"scale": self.scale, "mode": self.mode, "distribution": self.distribution}
        return {**own, **super().get_config(), "input_axes": self.input_axes, "output_axes": self.output_axes}


class _Scaled(VarianceScaling):
    """A VarianceScaling with scale, mode and distribution fixed."""

    _arguments: tuple[float, str, str]

    def __init__(
        self,
        seed: int | None = None,
        input_axes: Sequence[int] | None = None,
        output_axes: Sequence[int] | None = None,
    ) -> None:
        super().__init__(*self._arguments, seed, input_axes, output_axes)


class GlorotUniform(_Scaled):
    """Glorot, Bengio (AISTATS 2010): uniform, variance 2 / (fan_in + fan_out)."""

    _arguments = (1.0, "fan_avg", "uniform")


class GlorotNormal(_Scaled):
    """Glorot, Bengio (AISTATS 2010): truncated normal, variance 2 / (fan_in + fan_out)."""

    _arguments = (1.0, "fan_avg", "truncated_normal")


class HeUniform(_Scaled):
    """He et al. (ICCV 2015): uniform, variance 2 / fan_in."""

    _arguments = (2.0, "fan_in", "uniform")


class HeNormal(_Scaled):
    """He et al. (ICCV 2015): truncated normal, variance 2 / fan_in."""

    _arguments = (2.0, "fan_in", "truncated_normal")


class LecunUniform(_Scaled):
    """LeCun et al. (Efficient BackProp, 1998): uniform, variance 1 / fan_in."""

    _arguments = (1.0, "fan_in", "uniform")


class LecunNormal(_Scaled):
    """LeCun et al. (Efficient BackProp, 1998): truncated normal, variance 1 / fan_in."""

    _arguments = (1.0, "fan_in", "truncated_normal")


class Orthogonal(RandomInitializer):
    """gain times a random matrix with orthonormal columns (or rows, where there are fewer).

    Saxe et al. (ICLR 2014).  A shape of higher rank is taken as the matrix (product of all but the last, last).
    """

    def __init__(self, gain: float = 1.0, seed: int | None = None) -> None:
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
        return (self.gain * q.reshape(tuple(shape))).astype(dtype or config.floatx())

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, **super().get_config()}


#: the standard deviation of a standard normal distribution cut off at +-2
_TRUNCATED_STDDEV = math.sqrt(1 - 4 * math.exp(-2) / (math.sqrt(2 * math.pi) * math.erf(math.sqrt(2))))


def _truncated_normal(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    values = generator.normal(size=shape)
    flat = values.reshape(-1)
    outside = np.flatnonzero(np.abs(flat) > 2)
    while outside.size:
        flat[outside] = generator.normal(size=outside.size)
        outside = outside[np.abs(flat[outside]) > 2]
    return flat.reshape(shape)


def compute_fans(
    shape: Shape, input_axes: Sequence[int] | None = None, output_axes: Sequence[int] | None = None
) -> tuple[int, int]:
    """The numbers of inputs and outputs of one unit of a weight: (kh, kw, ci, co) has kh*kw*ci and kh*kw*co."""
    if input_axes is not None and output_axes is not None:
        return math.prod(shape[axis] for axis in input_axes), math.prod(shape[axis] for axis in output_axes)
    if len(shape) < 2:
        n = shape[0] if shape else 1
        return n, n
    field = math.prod(shape[:-2])
    return field * shape[-2], field * shape[-1]


def _plain_seed(seed: Any) -> int:
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0:
        return int(seed)
    raise ValueError(f"initializer: seed: expected an integer of 0 or more, got {seed!r}")


OrthogonalInitializer = Orthogonal
IdentityInitializer = Identity
zeros, ones, constant, identity, orthogonal = Zeros, Ones, Constant, Identity, Orthogonal
random_normal, random_uniform, truncated_normal = RandomNormal, RandomUniform, TruncatedNormal
variance_scaling = VarianceScaling
glorot_uniform, glorot_normal, he_uniform, he_normal = GlorotUniform, GlorotNormal, HeUniform, HeNormal
lecun_uniform, lecun_normal = LecunUniform, LecunNormal

_NAMES = [
    "Zeros",
    "Ones",
    "Constant",
    "Identity",
    "IdentityInitializer",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "VarianceScaling",
    "GlorotUniform",
    "GlorotNormal",
    "HeUniform",
    "HeNormal",
    "LecunUniform",
    "LecunNormal",
    "Orthogonal",
    "OrthogonalInitializer",
    "zeros",
    "ones",
    "constant",
    "identity",
    "random_normal",
    "random_uniform",
    "truncated_normal",
    "variance_scaling",
    "glorot_uniform",
    "glorot_normal",
    "he_uniform",
    "he_normal",
    "lecun_uniform",
    "lecun_normal",
    "orthogonal",
]
_registry = Registry(
    "initializer", {name: globals()[name] for name in _NAMES} | {"normal": RandomNormal, "uniform": RandomUniform}
)


def get(identifier: Any) -> Callable[..., Any] | None:
    """The initializer that identifier names: a name, a config, a class, a callable, an array, or None."""
    if isinstance(identifier, np.ndarray):
        return Constant(identifier)
    return _registry.get(identifier)


def serialize(initializer: Any) -> Any:
    return _registry.serialize(initializer)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    return _registry.deserialize(config, custom_objects)
