"""Intersection over union of classes, from a matrix of how often each class was taken for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pydtconv import config
from pydtconv.metrics.metric import Metric, as_array

__all__ = ["BinaryIoU", "IoU", "MeanIoU", "OneHotIoU", "OneHotMeanIoU"]


class IoU(Metric):
    """The mean over target_class_ids of the elements that are of a class in both over those in either.

    sparse_y_true, sparse_y_pred: whether they hold class numbers, not scores along `axis`.  ignore_class: a label whose
    elements do not count.
    """

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: str | None = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        super().__init__(dtype, name)
        self.total_cm = self.add_variable((num_classes, num_classes), dtype="float64", name="total_confusion_matrix")
        if max(target_class_ids) >= num_classes:
            raise ValueError(
                f"{type(self).__name__}: target_class_ids: expected numbers below {num_classes}, got {target_class_ids}"
            )
        self.num_classes = num_classes
        self.target_class_ids = list(target_class_ids)
        self.ignore_class = ignore_class
        self.sparse_y_true = sparse_y_true
        self.sparse_y_pred = sparse_y_pred
        self.axis = axis

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        labels, found = as_array(self, "y_true", y_true), as_array(self, "y_pred", y_pred)
        labels = labels if self.sparse_y_true else labels.argmax(self.axis)
        found = found if self.sparse_y_pred else found.argmax(self.axis)
        labels, found = (array.astype(np.int64).reshape(-1) for array in (labels, found))
        weights = np.ones(()) if sample_weight is None else as_array(self, "sample_weight", sample_weight)
        weights = np.broadcast_to(weights.astype(np.float64).reshape(-1), labels.shape)
        inside = (labels >= 0) & (labels < self.num_classes) & (found >= 0) & (found < self.num_classes)
        if self.ignore_class is not None:
            inside &= labels != self.ignore_class
        np.add.at(self.total_cm.array, (labels[inside], found[inside]), weights[inside])

    def result(self) -> float:
        matrix = self.total_cm.array
        both = np.diag(matrix)[self.target_class_ids]
        either = (matrix.sum(0) + matrix.sum(1) - np.diag(matrix))[self.target_class_ids]
        seen = either > 1e-9
        shares = np.where(seen, both / (either + config.epsilon()), 0.0)
        return float(shares.sum() / (seen.sum() + config.epsilon()))

    def get_config(self) -> dict[str, Any]:
        names = self._arguments
        return {"name": self.name, "dtype": self._pydt_dtype, **{name: getattr(self, name) for name in names}}

    _arguments: tuple[str, ...] = (
        "num_classes",
        "target_class_ids",
        "ignore_class",
        "sparse_y_true",
        "sparse_y_pred",
        "axis",
    )


class BinaryIoU(IoU):
    """IoU of two classes, y_pred being of class 1 from a threshold on."""

    _arguments: tuple[str, ...] = ("target_class_ids", "threshold")

    def __init__(
        self,
        target_class_ids: Sequence[int] = (0, 1),
        threshold: float = 0.5,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        super().update_state(y_true, as_array(self, "y_pred", y_pred) >= self.threshold, sample_weight)


class MeanIoU(IoU):
    """IoU of all classes."""

    _arguments: tuple[str, ...] = ("num_classes", "ignore_class", "sparse_y_true", "sparse_y_pred", "axis")

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: str | None = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, range(num_classes), name, dtype, ignore_class, sparse_y_true, sparse_y_pred, axis)


class OneHotIoU(IoU):
    """IoU of one-hot labels and scores."""

    _arguments: tuple[str, ...] = ("num_classes", "target_class_ids", "ignore_class", "sparse_y_pred", "axis")

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: str | None = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, target_class_ids, name, dtype, ignore_class, False, sparse_y_pred, axis)


class OneHotMeanIoU(MeanIoU):
    """IoU of all classes, of one-hot labels and scores."""

    _arguments: tuple[str, ...] = ("num_classes", "ignore_class", "sparse_y_pred", "axis")

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: str | None = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)
