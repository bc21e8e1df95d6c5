"""Optimizers with the names and arguments of `keras.optimizers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydtconv.optimizers import schedules
from pydtconv.optimizers.adafactor import Adafactor
from pydtconv.optimizers.adagrad import Adadelta, Adagrad
from pydtconv.optimizers.adam import Adam, Adamax, AdamW, Nadam
from pydtconv.optimizers.ftrl import Ftrl
from pydtconv.optimizers.lamb import Lamb
from pydtconv.optimizers.lars import Lars
from pydtconv.optimizers.lion import Lion
from pydtconv.optimizers.loss_scale import LossScaleOptimizer
from pydtconv.optimizers.muon import Muon
from pydtconv.optimizers.optimizer import Optimizer
from pydtconv.optimizers.rmsprop import RMSprop
from pydtconv.optimizers.schedule_free import ScheduleFreeAdamW
from pydtconv.optimizers.sgd import SGD
from pydtconv.serialization.built_ins import BuiltIns
from pydtconv.suggest import refusal

__all__ = [
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Lamb",
    "Lars",
    "Lion",
    "LossScaleOptimizer",
    "Muon",
    "Nadam",
    "Optimizer",
    "RMSprop",
    "ScheduleFreeAdamW",
    "deserialize",
    "get",
    "schedules",
    "serialize",
]

_CLASSES = (
    SGD, Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Ftrl, Lamb, Lars, Lion, LossScaleOptimizer, Muon, Nadam,
    RMSprop, ScheduleFreeAdamW,
)  # fmt: skip
_registry = BuiltIns(
    "optimizer",
    {
        **{optimizer.__name__.lower(): optimizer for optimizer in _CLASSES},
        **{optimizer.__name__: optimizer for optimizer in _CLASSES},
    },
)


def get(identifier: Any) -> Any:
    """The optimizer of a name, a config or a class; an optimizer, and None, are returned as they are.

    Raises ValueError for an unknown name, with the near ones, and for anything else.
    """
    if identifier is None or isinstance(identifier, Optimizer):
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


__getattr__ = refusal(__name__, __all__)
