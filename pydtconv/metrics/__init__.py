"""Metrics with the names and arguments of `keras.metrics`, computed in NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydtconv.metrics import functions
from pydtconv.metrics.at_constraint import (
    PrecisionAtRecall,
    RecallAtPrecision,
    SensitivityAtSpecificity,
    SpecificityAtSensitivity,
)
from pydtconv.metrics.auc import AUC
from pydtconv.metrics.confusion import (
    FalseNegatives,
    FalsePositives,
    Precision,
    Recall,
    TrueNegatives,
    TruePositives,
)
from pydtconv.metrics.correlation import (
    ConcordanceCorrelation,
    PearsonCorrelation,
    R2Score,
    concordance_correlation,
    pearson_correlation,
)
from pydtconv.metrics.f_score import F1Score, FBetaScore
from pydtconv.metrics.functions import (
    binary_accuracy,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_accuracy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_hinge,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    sparse_categorical_accuracy,
    sparse_categorical_crossentropy,
    sparse_top_k_categorical_accuracy,
    squared_hinge,
    top_k_categorical_accuracy,
)
from pydtconv.metrics.iou import BinaryIoU, IoU, MeanIoU, OneHotIoU, OneHotMeanIoU
from pydtconv.metrics.means import (
    Accuracy,
    BinaryAccuracy,
    BinaryCrossentropy,
    CategoricalAccuracy,
    CategoricalCrossentropy,
    CategoricalHinge,
    CosineSimilarity,
    Hinge,
    KLDivergence,
    LogCoshError,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    RootMeanSquaredError,
    SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy,
    SparseTopKCategoricalAccuracy,
    SquaredHinge,
    TopKCategoricalAccuracy,
)
from pydtconv.metrics.metric import Metric
from pydtconv.metrics.reduction import Mean, MeanMetricWrapper, Sum
from pydtconv.naming import to_snake_case
from pydtconv.serialization.built_ins import BuiltIns
from pydtconv.suggest import refusal

_CLASSES: tuple[Any, ...] = (
    AUC,
    Accuracy,
    BinaryAccuracy,
    BinaryCrossentropy,
    BinaryIoU,
    CategoricalAccuracy,
    CategoricalCrossentropy,
    CategoricalHinge,
    ConcordanceCorrelation,
    CosineSimilarity,
    F1Score,
    FBetaScore,
    FalseNegatives,
    FalsePositives,
    Hinge,
    IoU,
    KLDivergence,
    LogCoshError,
    Mean,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanIoU,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    OneHotIoU,
    OneHotMeanIoU,
    PearsonCorrelation,
    Poisson,
    Precision,
    PrecisionAtRecall,
    R2Score,
    Recall,
    RecallAtPrecision,
    RootMeanSquaredError,
    SensitivityAtSpecificity,
    SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy,
    SparseTopKCategoricalAccuracy,
    SpecificityAtSensitivity,
    SquaredHinge,
    Sum,
    TopKCategoricalAccuracy,
    TrueNegatives,
    TruePositives,
)
_FUNCTIONS: tuple[Any, ...] = (
    binary_accuracy,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_accuracy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_hinge,
    concordance_correlation,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    pearson_correlation,
    poisson,
    sparse_categorical_accuracy,
    sparse_categorical_crossentropy,
    sparse_top_k_categorical_accuracy,
    squared_hinge,
    top_k_categorical_accuracy,
)
_names: dict[str, Any] = {
    **{to_snake_case(metric.__name__): metric for metric in _CLASSES},
    **{metric.__name__: metric for metric in _CLASSES},
    "bce": BinaryCrossentropy,
    "BCE": BinaryCrossentropy,
    "mse": MeanSquaredError,
    "MSE": MeanSquaredError,
    "rmse": RootMeanSquaredError,
    "RMSE": RootMeanSquaredError,
    "mae": MeanAbsoluteError,
    "MAE": MeanAbsoluteError,
    "mape": MeanAbsolutePercentageError,
    "MAPE": MeanAbsolutePercentageError,
    "msle": MeanSquaredLogarithmicError,
    "MSLE": MeanSquaredLogarithmicError,
    "cosine_similarity": CosineSimilarity,
    "log_cosh": LogCoshError,
    "huber": huber,
    "binary_focal_crossentropy": binary_focal_crossentropy,
    "categorical_focal_crossentropy": categorical_focal_crossentropy,
}
_registry = BuiltIns("metric", _names)

__all__ = [
    "AUC",
    "Accuracy",
    "BinaryAccuracy",
    "BinaryCrossentropy",
    "BinaryIoU",
    "CategoricalAccuracy",
    "CategoricalCrossentropy",
    "CategoricalHinge",
    "ConcordanceCorrelation",
    "CosineSimilarity",
    "F1Score",
    "FBetaScore",
    "FalseNegatives",
    "FalsePositives",
    "Hinge",
    "IoU",
    "KLDivergence",
    "LogCoshError",
    "Mean",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanIoU",
    "MeanMetricWrapper",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Metric",
    "OneHotIoU",
    "OneHotMeanIoU",
    "PearsonCorrelation",
    "Poisson",
    "Precision",
    "PrecisionAtRecall",
    "R2Score",
    "Recall",
    "RecallAtPrecision",
    "RootMeanSquaredError",
    "SensitivityAtSpecificity",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "SparseTopKCategoricalAccuracy",
    "SpecificityAtSensitivity",
    "SquaredHinge",
    "Sum",
    "TopKCategoricalAccuracy",
    "TrueNegatives",
    "TruePositives",
    "binary_accuracy",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_accuracy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_hinge",
    "concordance_correlation",
    "deserialize",
    "functions",
    "get",
    "hinge",
    "huber",
    "kl_divergence",
    "log_cosh",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
    "pearson_correlation",
    "poisson",
    "serialize",
    "sparse_categorical_accuracy",
    "sparse_categorical_crossentropy",
    "sparse_top_k_categorical_accuracy",
    "squared_hinge",
    "top_k_categorical_accuracy",
]


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
