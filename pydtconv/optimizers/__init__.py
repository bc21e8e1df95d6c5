"""Optimizers with the names and arguments of `keras.optimizers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydtconv.optimizers import schedules
from pydtconv.optimizers.adagrad import Adadelta, Adagrad
from pydtconv.optimizers.adam import Adam, Adamax, AdamW, Nadam
from pydtconv.optimizers.ftrl import Ftrl
from pydtconv.optimizers.lion import Lion
from pydtconv.optimizers.optimizer import Optimizer
from pydtconv.optimizers.rmsprop import RMSprop
from pydtconv.optimizers.sgd import SGD
from pydtconv.serialization.built_ins import BuiltIns

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Lion",
    "Nadam",
    "Optimizer",
    "RMSprop",
    "deserialize",
    "get",
    "schedules",
    "serialize",
]

_CLASSES = (SGD, Adadelta, Adagrad, Adam, AdamW, Adamax, Ftrl, Lion, Nadam, RMSprop)
_registry = BuiltIns(
    "optimizer",
    {
        **{optimizer.__name__.lower(): optimizer for optimizer in _CLASSES},
        **{optimizer.__name__: optimizer for optimizer in _CLASSES},
    },
)


def get(identifier: Any) -> Optimizer:
    """The optimizer of a name, a config or a class; an optimizer is returned as it is.

    Raises ValueError for an unknown name, with the near ones, and for anything else.
    """
    if isinstance(identifier, Optimizer):
        return identifier
    known = (
        identifier.lower() if isinstance(identifier, str) and identifier.lower() in _registry.objects else identifier
    )
    found = _registry.get(known)
    if not isinstance(found, Optimizer):
        raise ValueError(f"optimizer: expected a name, a config or an Optimizer, got {identifier!r}")
    return found


def serialize(optimizer: Optimizer) -> Any:
    """The optimizer as a config that `deserialize` takes."""
    return _registry.serialize(optimizer)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Optimizer:
    """The optimizer of a config.  Raises ValueError for an unknown class, with the near names."""
    return _registry.deserialize(config, custom_objects)
