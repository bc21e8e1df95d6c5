"""Losses with the names and arguments of `keras.losses`, in operators of the graph."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pydtconv.losses import crossentropy, overlap, regression, sequences
from pydtconv.losses.crossentropy import *  # noqa: F403
from pydtconv.losses.loss import Loss as Loss
from pydtconv.losses.loss import LossFunctionWrapper as LossFunctionWrapper
from pydtconv.losses.overlap import *  # noqa: F403
from pydtconv.losses.regression import *  # noqa: F403
from pydtconv.losses.sequences import *  # noqa: F403
from pydtconv.naming import to_snake_case
from pydtconv.serialization.built_ins import BuiltIns
from pydtconv.suggest import refusal

_OBJECTS: dict[str, Any] = {
    name: globals()[name] for file in (crossentropy, overlap, regression, sequences) for name in file.__all__
}
_ALIASES = {
    "bce": crossentropy.binary_crossentropy,
    "kld": regression.kl_divergence,
    "mae": regression.mean_absolute_error,
    "mape": regression.mean_absolute_percentage_error,
    "mse": regression.mean_squared_error,
    "msle": regression.mean_squared_logarithmic_error,
    "logcosh": regression.log_cosh,
}
_registry = BuiltIns(
    "loss", {**_OBJECTS, **_ALIASES, **{name.upper(): function for name, function in _ALIASES.items()}}
)
_loss_of: dict[Any, Any] = {
    _OBJECTS[to_snake_case(name)]: loss for name, loss in _OBJECTS.items() if inspect.isclass(loss)
}

__all__ = [*_OBJECTS, "Loss", "LossFunctionWrapper", "deserialize", "get", "serialize"]


def get(identifier: Any) -> Any:
    """The loss of a name, a config, a class or a function (y_true, y_pred); None stays None.

    Names as "mse" and "mean_squared_error" are functions, which give a value for each sample; those of classes, as
    "MeanSquaredError", are Losses.
    Raises ValueError for an unknown name, with the near ones, and for anything else.
    """
    return _registry.get(identifier)


def as_loss(identifier: Any) -> Loss:
    """The Loss of what `get` takes, which reduces what a function gives to one number."""
    found = get(identifier)
    if isinstance(found, Loss):
        return found
    loss = _loss_of.get(found) if inspect.isfunction(found) else None
    return LossFunctionWrapper(found) if loss is None else loss()


def serialize(loss: Any) -> Any:
    """The loss as a config that `deserialize` takes."""
    return _registry.serialize(loss)


def deserialize(name: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The loss of a config or a name.  Raises ValueError for an unknown one, with the near names."""
    return _registry.deserialize(name, custom_objects)


__getattr__ = refusal(__name__, __all__)
