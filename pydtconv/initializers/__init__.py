"""Initializers: what the weights of a layer are before training.

An initializer is a callable (shape, dtype) -> array.  A random one draws the same values each time it is called, from
its `seed` or, without one, from a seed that it took from `utils.set_random_seed`'s sequence when it was made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pydtconv import hooks
from pydtconv.initializers.constants import Constant, Identity, Ones, Zeros
from pydtconv.initializers.fans import (
    GlorotNormal,
    GlorotUniform,
    HeNormal,
    HeUniform,
    LecunNormal,
    LecunUniform,
    VarianceScaling,
    compute_fans,
)
from pydtconv.initializers.fourier import STFT
from pydtconv.initializers.initializer import Initializer
from pydtconv.initializers.random import Orthogonal, RandomInitializer, RandomNormal, RandomUniform, TruncatedNormal
from pydtconv.naming import to_snake_case
from pydtconv.serialization.built_ins import BuiltIns
from pydtconv.suggest import refusal

OrthogonalInitializer = Orthogonal
IdentityInitializer = Identity
STFTInitializer = stft = STFT
zeros, ones, constant, identity, orthogonal = Zeros, Ones, Constant, Identity, Orthogonal
random_normal, random_uniform, truncated_normal = RandomNormal, RandomUniform, TruncatedNormal
variance_scaling = VarianceScaling
glorot_uniform, glorot_normal, he_uniform, he_normal = GlorotUniform, GlorotNormal, HeUniform, HeNormal
lecun_uniform, lecun_normal = LecunUniform, LecunNormal

_CLASSES: tuple[type[Initializer], ...] = (
    Zeros,
    Ones,
    Constant,
    Identity,
    RandomNormal,
    RandomUniform,
    TruncatedNormal,
    VarianceScaling,
    GlorotUniform,
    GlorotNormal,
    HeUniform,
    HeNormal,
    LecunUniform,
    LecunNormal,
    Orthogonal,
    STFT,
)
_registry = BuiltIns(
    "initializer",
    {
        **{initializer.__name__: initializer for initializer in _CLASSES},
        **{to_snake_case(initializer.__name__): initializer for initializer in _CLASSES},
        "IdentityInitializer": Identity,
        "OrthogonalInitializer": Orthogonal,
        "STFTInitializer": STFT,
        "stft": STFT,
        "normal": RandomNormal,
        "uniform": RandomUniform,
    },
)

__all__ = [
    "Constant",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "Identity",
    "IdentityInitializer",
    "Initializer",
    "LecunNormal",
    "LecunUniform",
    "Ones",
    "Orthogonal",
    "OrthogonalInitializer",
    "RandomInitializer",
    "RandomNormal",
    "RandomUniform",
    "STFT",
    "STFTInitializer",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "compute_fans",
    "deserialize",
    "get",
    "serialize",
    *sorted(to_snake_case(initializer.__name__) for initializer in _CLASSES),
]


@hooks.initializer.fill
def get(identifier: Any) -> Callable[..., Any] | None:
    """The initializer that identifier names: a name, a config, a class, a callable, an array, or None."""
    if isinstance(identifier, np.ndarray):
        return Constant(identifier)
    return _registry.get(identifier)


def serialize(initializer: Any) -> Any:
    return _registry.serialize(initializer)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    return _registry.deserialize(config, custom_objects)


__getattr__ = refusal(__name__, __all__)
