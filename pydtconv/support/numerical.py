"""Labels and arrays: one-hot codes and normalization."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.dtypes import real_array


def to_categorical(x: Any, num_classes: int | None = None) -> np.ndarray:
    """One-hot codes of class numbers.

    x: integers from 0 to num_classes - 1, of any shape; a last axis of 1 is dropped, as for labels of shape (n, 1).
    num_classes: their number; the largest label + 1 when not given.
    Returns an array of shape x.shape + (num_classes,) in the default float type.
    Raises ValueError for labels out of range.
    """
    labels = real_array("to_categorical", x).astype(np.int64)
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    if num_classes is None:
        num_classes = int(labels.max(initial=-1)) + 1
    if labels.size and (labels.min() < 0 or labels.max() >= num_classes):
        raise ValueError(
            f"to_categorical: expected labels from 0 to {num_classes - 1}, got {labels.min()} to {labels.max()}"
        )
    codes = np.zeros((labels.size, num_classes), config.floatx())
    codes[np.arange(labels.size), labels.reshape(-1)] = 1
    return codes.reshape(*labels.shape, num_classes)


def normalize(x: Any, axis: int = -1, order: int = 2) -> np.ndarray:
    """x divided by its norm of the given order along an axis; a zero norm divides by 1.  A scalar becomes a vector."""
    values = np.atleast_1d(real_array("normalize", x))
    if not np.issubdtype(values.dtype, np.floating):
        values = values.astype(config.floatx())
    if not isinstance(order, int) or order < 1:
        raise ValueError(f"normalize: expected order to be an integer of 1 or more, got {order!r}")
    norm = np.sum(np.abs(values) ** order, axis=axis, keepdims=True) ** (1 / order)
    norm[norm == 0] = 1
    return values / norm
