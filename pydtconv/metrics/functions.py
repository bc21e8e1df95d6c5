"""Per-sample values of metrics, in NumPy, with the names and arguments of the functions of `keras.metrics`.

y_true and y_pred are arrays of one shape (n, ..., k) where nothing else is said; the result has shape (n, ...).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.dtypes import real_array
from pydtconv.hooks import returning
from pydtconv.naming import defined_in
from pydtconv.ops.elementwise_loss import values_of


def match_ranks(x1: np.ndarray, x2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Brings arrays whose ranks differ by one to the same rank, where the extra axis is a last one of length 1."""
    if x1.ndim == x2.ndim + 1 and x1.shape[-1] == 1:
        return (x1, x2[:, None]) if x2.ndim == 1 else (x1[..., 0], x2)
    if x2.ndim == x1.ndim + 1 and x2.shape[-1] == 1:
        return (x1[:, None], x2) if x1.ndim == 1 else (x1, x2[..., 0])
    return x1, x2


def as_floats(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays of the predictions' float type."""
    y_true, y_pred = real_array("y_true", y_true), real_array("y_pred", y_pred)
    if y_pred.dtype.kind != "f":
        y_pred = y_pred.astype(config.floatx())
    return np.asarray(y_true, dtype=y_pred.dtype), y_pred


def _matched(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray]:
    y_true, y_pred = match_ranks(*as_floats(y_true, y_pred))
    if y_true.shape == y_pred.shape:
        return y_true, y_pred
    told = f"expected y_true and y_pred of one shape, got {y_true.shape} and {y_pred.shape}"
    try:
        repeated = np.broadcast_arrays(y_true, y_pred)
    except ValueError:
        raise ValueError(told) from None
    warnings.warn(f"metric: {told}: repeated to {repeated[0].shape}", stacklevel=2)
    return repeated[0], repeated[1]


def accuracy(y_true: Any, y_pred: Any) -> np.ndarray:
    """1 where the two are equal."""
    y_true, y_pred = _matched(y_true, y_pred)
    return (y_true == y_pred).astype(y_pred.dtype)


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> np.ndarray:
    """1 where y_true (0 or 1) says whether y_pred is above the threshold."""
    y_true, y_pred = _matched(y_true, y_pred)
    return (y_true == (y_pred > threshold)).astype(y_pred.dtype)


def categorical_accuracy(y_true: Any, y_pred: Any) -> np.ndarray:
    """1 where y_true (n, ..., k), one-hot, and y_pred are largest at the same class."""
    y_true, y_pred = real_array("y_true", y_true), real_array("y_pred", y_pred)
    return (y_true.argmax(-1) == y_pred.argmax(-1)).astype(config.floatx())


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> np.ndarray:
    """1 where y_pred (n, ..., k) is largest at the class y_true (n, ...) or (n, ..., 1)."""
    y_pred = real_array("y_pred", y_pred)
    return (labels_of(y_true, y_pred) == y_pred.argmax(-1)).astype(config.floatx())


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> np.ndarray:
    """1 where the class of y_true (n, ..., classes), one-hot, is among the k largest of y_pred."""
    return sparse_top_k_categorical_accuracy(real_array("y_true", y_true).argmax(-1), y_pred, k)


def sparse_top_k_categorical_accuracy(
    y_true: Any, y_pred: Any, k: int = 5, from_sorted_ids: bool = False
) -> np.ndarray:
    """1 where the class y_true (n, ...) is among the k largest of y_pred (n, ..., classes).

    from_sorted_ids: y_pred holds class numbers, the most likely first.  Ties count in favour of the class.
    """
    y_pred = real_array("y_pred", y_pred)
    labels = labels_of(y_true, y_pred)
    if from_sorted_ids:
        return (y_pred[..., :k] == labels[..., None]).any(-1).astype(config.floatx())
    inside = (labels >= 0) & (labels < y_pred.shape[-1])
    scores = np.take_along_axis(y_pred, np.where(inside, labels, 0)[..., None], axis=-1)
    hits = inside & np.isfinite(scores[..., 0]) & ((y_pred > scores).sum(-1) < k)
    return hits.astype(config.floatx())


def labels_of(y_true: Any, y_pred: np.ndarray) -> np.ndarray:
    labels = real_array("y_true", y_true)
    if labels.ndim == y_pred.ndim and labels.shape[-1] == 1:
        labels = labels[..., 0]
    return labels.astype(np.int64)


def _loss(kind: str, y_true: Any, y_pred: Any, delta: float | None = None) -> np.ndarray:
    found: np.ndarray = values_of(kind, np, y_pred, y_true, config.epsilon() if delta is None else delta)
    return found


def mean_squared_error(y_true: Any, y_pred: Any) -> np.ndarray:
    """The mean of (y_true - y_pred)^2."""
    return _loss("mse", *_matched(y_true, y_pred))


def mean_absolute_error(y_true: Any, y_pred: Any) -> np.ndarray:
    """The mean of |y_true - y_pred|."""
    return _loss("mae", *_matched(y_true, y_pred))


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> np.ndarray:
    """100 times the mean of |y_true - y_pred| / |y_true|."""
    y_true, y_pred = _matched(y_true, y_pred)
    return 100 * np.abs((y_true - y_pred) / np.maximum(np.abs(y_true), config.epsilon())).mean(-1)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> np.ndarray:
    """The mean of (log(1 + y_true) - log(1 + y_pred))^2."""
    return _loss("msle", *_matched(y_true, y_pred))


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> np.ndarray:
    """error^2 / 2 up to delta, a straight line of slope delta beyond."""
    return _loss("huber", *_matched(y_true, y_pred), delta)


def log_cosh(y_true: Any, y_pred: Any) -> np.ndarray:
    """The mean of log(cosh(y_pred - y_true))."""
    return _loss("logcosh", *_matched(y_true, y_pred))


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> np.ndarray:
    """The cosine of the angle between y_true and y_pred, as the metric has it (the loss is its negative)."""
    y_true, y_pred = match_ranks(*as_floats(y_true, y_pred))
    _matched(y_true, y_pred)
    return (_unit(y_true, axis) * _unit(y_pred, axis)).sum(axis)


def _unit(x: np.ndarray, axis: int) -> np.ndarray:
    return x / np.sqrt(np.maximum(np.square(x).sum(axis, keepdims=True), 1e-12))


def hinge(y_true: Any, y_pred: Any) -> np.ndarray:
    """max(1 - y_true * y_pred, 0); labels 0 and 1 are read as -1 and 1."""
    return _loss("hinge", *_matched(y_true, y_pred))


def squared_hinge(y_true: Any, y_pred: Any) -> np.ndarray:
    """The square of max(1 - y_true * y_pred, 0), with labels as `hinge` reads them."""
    return _loss("squared_hinge", *_matched(y_true, y_pred))


def categorical_hinge(y_true: Any, y_pred: Any) -> np.ndarray:
    y_true, y_pred = as_floats(y_true, y_pred)
    best = ((1 - y_true) * y_pred).max(-1)
    return np.maximum(best - (y_true * y_pred).sum(-1) + 1, 0)


def kl_divergence(y_true: Any, y_pred: Any) -> np.ndarray:
    """The sum of y_true log(y_true / y_pred)."""
    return _loss("kl_divergence", *as_floats(y_true, y_pred))


def poisson(y_true: Any, y_pred: Any) -> np.ndarray:
    """The mean of y_pred - y_true log(y_pred)."""
    return _loss("poisson", *as_floats(y_true, y_pred))


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> np.ndarray:
    """-y_true log(y_pred) - (1 - y_true) log(1 - y_pred), its mean over the last axis."""
    return _binary_crossentropies(y_true, y_pred, from_logits, label_smoothing)[2].mean(axis)


def binary_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> np.ndarray:
    """Binary cross-entropy times (1 - probability of the true class)^gamma."""
    if from_logits:
        y_pred = _sigmoid(real_array("y_pred", y_pred))
    y_true, y_pred, values = _binary_crossentropies(y_true, y_pred, False, label_smoothing)
    values = values * (1 - y_true * y_pred - (1 - y_true) * (1 - y_pred)) ** gamma
    if apply_class_balancing:
        values = values * (y_true * alpha + (1 - y_true) * (1 - alpha))
    return values.mean(axis)


def _binary_crossentropies(
    y_true: Any, y_pred: Any, from_logits: bool, label_smoothing: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y_true, y_pred = _matched(y_true, y_pred)
    if label_smoothing:
        y_true = y_true * (1 - label_smoothing) + 0.5 * label_smoothing
    if from_logits:
        return y_true, y_pred, np.logaddexp(0, y_pred).astype(y_pred.dtype) - y_true * y_pred
    p = np.clip(y_pred, config.epsilon(), 1 - config.epsilon())
    return y_true, y_pred, -(y_true * np.log(p) + (1 - y_true) * np.log(1 - p))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * x))


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1
) -> np.ndarray:
    """-sum over the classes of y_true log(y_pred); y_pred is divided by its sum first."""
    y_true, y_pred = as_floats(y_true, y_pred)
    if label_smoothing:
        y_true = y_true * (1 - label_smoothing) + label_smoothing / y_true.shape[axis]
    return -(y_true * _log_probabilities(y_pred, from_logits, axis)).sum(axis)


def categorical_focal_crossentropy(
    y_true: Any,
    y_pred: Any,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> np.ndarray:
    """Categorical cross-entropy, each class times alpha (1 - y_pred)^gamma; Lin et al. (ICCV 2017)."""
    y_true, y_pred = as_floats(y_true, y_pred)
    if label_smoothing:
        y_true = y_true * (1 - label_smoothing) + label_smoothing / y_true.shape[axis]
    if from_logits:
        y_pred = np.exp(y_pred - y_pred.max(axis, keepdims=True))
    p = np.clip(y_pred / y_pred.sum(axis, keepdims=True), config.epsilon(), 1 - config.epsilon())
    return -(y_true * np.log(p) * alpha * (1 - p) ** gamma).sum(axis)


def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, ignore_class: int | None = None, axis: int = -1
) -> np.ndarray:
    """-log(y_pred at the class y_true), 0 where y_true is ignore_class."""
    _, y_pred = as_floats(0, y_pred)
    y_pred = np.moveaxis(y_pred, axis, -1)
    labels = labels_of(y_true, y_pred)
    ignored = labels == ignore_class if ignore_class is not None else np.zeros(labels.shape, bool)
    logs = _log_probabilities(y_pred, from_logits, -1)
    picked = np.take_along_axis(logs, np.where(ignored, 0, labels)[..., None], axis=-1)[..., 0]
    return np.where(ignored, 0, -picked).astype(y_pred.dtype)


def _log_probabilities(y_pred: np.ndarray, from_logits: bool, axis: int) -> np.ndarray:
    if from_logits:
        shifted = y_pred - y_pred.max(axis, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))
    p = y_pred / y_pred.sum(axis, keepdims=True)
    return np.log(np.clip(p, config.epsilon(), 1 - config.epsilon()))


#: what Keras has in its module has not these
_OTHERS = ("accuracy", "as_floats", "cosine_similarity", "labels_of", "match_ranks")
__all__ = [name for name in defined_in(globals()) if name not in _OTHERS]
globals().update({name: returning(globals()[name]) for name in __all__})
