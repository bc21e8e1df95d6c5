"""Losses with the names and arguments of `keras.losses`, in operators of the graph."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pydtconv.losses.crossentropy import (
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    SparseCategoricalCrossentropy,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    sparse_categorical_crossentropy,
)
from pydtconv.losses.loss import Loss, LossFunctionWrapper
from pydtconv.losses.overlap import (
    CategoricalGeneralizedCrossEntropy,
    Circle,
    Dice,
    Tversky,
    categorical_generalized_cross_entropy,
    circle,
    dice,
    tversky,
)
from pydtconv.losses.regression import (
    CategoricalHinge,
    CosineSimilarity,
    Hinge,
    Huber,
    KLDivergence,
    LogCosh,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    SquaredHinge,
    categorical_hinge,
    cosine_similarity,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    squared_hinge,
)
from pydtconv.losses.sequences import CTC, ctc
from pydtconv.naming import to_snake_case
from pydtconv.serialization.built_ins import BuiltIns
from pydtconv.suggest import refusal

_CLASSES: tuple[Any, ...] = (
    CTC,
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    CategoricalGeneralizedCrossEntropy,
    CategoricalHinge,
    Circle,
    CosineSimilarity,
    Dice,
    Hinge,
    Huber,
    KLDivergence,
    LogCosh,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    SparseCategoricalCrossentropy,
    SquaredHinge,
    Tversky,
)
_FUNCTIONS: tuple[Any, ...] = (
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_generalized_cross_entropy,
    categorical_hinge,
    circle,
    cosine_similarity,
    ctc,
    dice,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
    tversky,
)
_ALIASES = {
    "bce": binary_crossentropy,
    "kld": kl_divergence,
    "mae": mean_absolute_error,
    "mape": mean_absolute_percentage_error,
    "mse": mean_squared_error,
    "msle": mean_squared_logarithmic_error,
    "logcosh": log_cosh,
}
_registry = BuiltIns(
    "loss",
    {
        **{function.__name__: function for function in _FUNCTIONS},
        **{loss.__name__: loss for loss in _CLASSES},
        **_ALIASES,
        **{name.upper(): loss for name, loss in _ALIASES.items()},
    },
)
_loss_of = {globals()[to_snake_case(loss.__name__)]: loss for loss in _CLASSES}

__all__ = [
    "CTC",
    "BinaryCrossentropy",
    "BinaryFocalCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalFocalCrossentropy",
    "CategoricalGeneralizedCrossEntropy",
    "CategoricalHinge",
    "Circle",
    "CosineSimilarity",
    "Dice",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "Loss",
    "LossFunctionWrapper",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Poisson",
    "SparseCategoricalCrossentropy",
    "SquaredHinge",
    "Tversky",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_generalized_cross_entropy",
    "categorical_hinge",
    "circle",
    "cosine_similarity",
    "ctc",
    "deserialize",
    "dice",
    "get",
    "hinge",
    "huber",
    "kl_divergence",
    "log_cosh",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "poisson",
    "serialize",
    "sparse_categorical_crossentropy",
    "squared_hinge",
    "tversky",
]


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
