"""The best of one rate where another is at least so large, over thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np

from pydtconv.metrics.confusion import Confusion, claim_thresholds, divide, of_class

__all__ = ["PrecisionAtRecall", "RecallAtPrecision", "SensitivityAtSpecificity", "SpecificityAtSensitivity"]

#: rates of a confusion matrix by name
_RATES = {
    "sensitivity": lambda m: divide(m.true_positives, m.true_positives + m.false_negatives),
    "specificity": lambda m: divide(m.true_negatives, m.true_negatives + m.false_positives),
    "precision": lambda m: divide(m.true_positives, m.true_positives + m.false_positives),
}
_RATES["recall"] = _RATES["sensitivity"]


class AtConstraint(Confusion):
    """The largest `best` where `given` is its value or more."""

    best = ""
    given = ""

    def __init__(self, value: float, num_thresholds: int, class_id: int | None, name: Any, dtype: Any) -> None:
        if not 0 <= value <= 1:
            raise ValueError(f"{type(self).__name__}: {self.given}: expected a number from 0 to 1, got {value}")
        if num_thresholds <= 0:
            raise ValueError(f"{type(self).__name__}: num_thresholds: expected 1 or more, got {num_thresholds}")
        claim_thresholds(self, num_thresholds)
        limits = [0.5] if num_thresholds == 1 else np.linspace(0, 1, num_thresholds).tolist()
        super().__init__(limits, name, dtype)
        self.thresholds = limits
        self.num_thresholds = num_thresholds
        self.class_id = class_id
        setattr(self, self.given, value)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        labels, scores, weights = self._arrays(y_true, y_pred, sample_weight)
        if self.class_id is not None:
            labels, scores, weights = of_class(self, self.class_id, labels, scores, weights)
        self._count(labels, scores, weights)

    def result(self) -> float:
        allowed = _RATES[self.given](self) >= getattr(self, self.given)
        return float(np.max(np.where(allowed, _RATES[self.best](self), 0), initial=0))

    def get_config(self) -> dict[str, Any]:
        own = {"num_thresholds": self.num_thresholds, self.given: getattr(self, self.given), "class_id": self.class_id}
        return {"name": self.name, "dtype": self._pydt_dtype, **own}


class SensitivityAtSpecificity(AtConstraint):
    """The best sensitivity at a specificity."""

    best, given = "sensitivity", "specificity"

    def __init__(
        self,
        specificity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(specificity, num_thresholds, class_id, name, dtype)


class SpecificityAtSensitivity(AtConstraint):
    """The best specificity at a sensitivity."""

    best, given = "specificity", "sensitivity"

    def __init__(
        self,
        sensitivity: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(sensitivity, num_thresholds, class_id, name, dtype)


class PrecisionAtRecall(AtConstraint):
    """The best precision at a recall."""

    best, given = "precision", "recall"

    def __init__(
        self,
        recall: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(recall, num_thresholds, class_id, name, dtype)


class RecallAtPrecision(AtConstraint):
    """The best recall at a precision."""

    best, given = "recall", "precision"

    def __init__(
        self,
        precision: float,
        num_thresholds: int = 200,
        class_id: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(precision, num_thresholds, class_id, name, dtype)
