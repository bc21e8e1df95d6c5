"""Metrics with the names and arguments of `keras.metrics`, computed in NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pydtconv.metrics import functions as functions
from pydtconv.metrics import means
from pydtconv.metrics.at_constraint import *  # noqa: F403
from pydtconv.metrics.auc import *  # noqa: F403
from pydtconv.metrics.confusion import *  # noqa: F403
from pydtconv.metrics.correlation import *  # noqa: F403
from pydtconv.metrics.f_score import *  # noqa: F403
from pydtconv.metrics.functions import *  # noqa: F403
from pydtconv.metrics.iou import *  # noqa: F403
from pydtconv.metrics.means import *  # noqa: F403
from pydtconv.metrics.metric import *  # noqa: F403
from pydtconv.metrics.metric import Metric as Metric
from pydtconv.metrics.reduction import *  # noqa: F403
from pydtconv.naming import to_snake_case
from pydtconv.serialization.built_ins import BuiltIns
from pydtconv.suggest import refusal

_OWN = {name: thing for name, thing in globals().items() if getattr(thing, "__module__", "").startswith(f"{__name__}.")}
_CLASSES = [m for m in _OWN.values() if inspect.isclass(m) and m.__name__ not in ("Metric", "MeanMetricWrapper")]
_names: dict[str, Any] = {
    **{to_snake_case(metric.__name__): metric for metric in _CLASSES},
    **{metric.__name__: metric for metric in _CLASSES},
    "bce": means.BinaryCrossentropy,
    "BCE": means.BinaryCrossentropy,
    "mse": means.MeanSquaredError,
    "MSE": means.MeanSquaredError,
    "rmse": means.RootMeanSquaredError,
    "RMSE": means.RootMeanSquaredError,
    "mae": means.MeanAbsoluteError,
    "MAE": means.MeanAbsoluteError,
    "mape": means.MeanAbsolutePercentageError,
    "MAPE": means.MeanAbsolutePercentageError,
    "msle": means.MeanSquaredLogarithmicError,
    "MSLE": means.MeanSquaredLogarithmicError,
    "cosine_similarity": means.CosineSimilarity,
    "log_cosh": means.LogCoshError,
    "huber": functions.huber,
    "binary_focal_crossentropy": functions.binary_focal_crossentropy,
    "categorical_focal_crossentropy": functions.categorical_focal_crossentropy,
}
_registry = BuiltIns("metric", _names)

__all__ = ["deserialize", "functions", "get", "serialize", *_OWN]


def get(identifier: Any) -> Any:
    """The metric (or the function of one) of a name, a config, a class or a function; None stays None.

    Raises ValueError for an unknown name, with the near ones, and for anything else.
    """
    return identifier if isinstance(identifier, Metric) else _registry.get(identifier)


def serialize(metric: Any) -> Any:
    """The metric as a config that `deserialize` takes."""
    return _registry.serialize(metric)


def deserialize(config: Any, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """The metric of a config or a name.  Raises ValueError for an unknown one, with the near names."""
    return _registry.deserialize(config, custom_objects)


__getattr__ = refusal(__name__, __all__)
