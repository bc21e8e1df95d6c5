"""Watching one result from epoch to epoch: whether it got better."""

from __future__ import annotations

import math
import warnings
from typing import Any

from pydtconv import replica
from pydtconv.callbacks.callback import Callback, Logs
from pydtconv.utils.suggest import did_you_mean

#: parts of names of results that are better the larger they are
_LARGER = ("acc", "auc", "precision", "recall", "f1", "fbeta", "top_k", "iou", "r2", "cosine_similarity")


class Monitor(Callback):
    """A callback with a result to watch.  mode: "min", "max", or "auto" by the result's name."""

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        super().__init__()
        if mode not in ("auto", "min", "max"):
            warnings.warn(
                f"{type(self).__name__}: expected mode 'auto', 'min' or 'max', got {mode!r}; 'auto' is used",
                UserWarning,
                stacklevel=3,
            )
            mode = "auto"
        self.monitor = monitor
        self.mode = mode
        self.min_delta = abs(min_delta)

    @property
    def larger(self) -> bool:
        """Whether larger is better."""
        if self.mode != "auto":
            return self.mode == "max"
        name = self.monitor.removeprefix("val_")
        return any(part in name for part in _LARGER)

    @property
    def worst(self) -> float:
        return -math.inf if self.larger else math.inf

    def better(self, value: float, reference: float) -> bool:
        """Whether value is better than reference by more than min_delta."""
        return value - self.min_delta > reference if self.larger else value + self.min_delta < reference

    def value(self, logs: Logs | None) -> float | None:
        """The watched result, or None, with a warning, where there is none of validation.

        Raises ValueError for a name that no result has.
        """
        logs = logs or {}
        if self.monitor in logs:
            return float(logs[self.monitor])
        if logs and self.monitor.removeprefix("val_") not in logs:
            raise ValueError(
                f"{type(self).__name__}: monitor: expected one of {', '.join(logs)}, got {self.monitor!r}"
                f"{did_you_mean(self.monitor, logs)}"
            )
        warnings.warn(
            f"{type(self).__name__}: the result {self.monitor!r} is not there; there are {', '.join(logs) or 'none'}",
            UserWarning,
            stacklevel=4,
        )
        return None


def say(verbose: Any, text: str) -> None:
    if verbose and replica.current().is_main:
        print(text, flush=True)
