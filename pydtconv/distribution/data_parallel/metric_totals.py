"""Metrics over the samples of all processes: what each has gained by a batch is summed and added everywhere."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np


class MetricTotals:
    """The state of metrics before a batch; all numbers in a metric's state are sums over samples."""

    def __init__(self, metrics: Iterable[Any]) -> None:
        self.metrics = list(metrics)
        self._before = [copy.deepcopy(metric.get_state()) for metric in self.metrics]
        self._after: list[Any] = []
        #: what they had gained in this process alone when that was last asked for
        self.gained_here = np.empty(0)

    def gained(self, counting: Sequence[float] | None = None) -> np.ndarray:
        """What the metrics have gained since, as one flat array in float64.

        counting: for each metric, what part of its gain counts: 0 for a copy of another process's; None: all of each.
        """
        self._after = [metric.get_state() for metric in self.metrics]
        parts = [
            (part, 1.0 if counting is None else counting[i])
            for i, (a, b) in enumerate(zip(self._after, self._before, strict=True))
            for part in _gains(a, b)
        ]
        if not parts:
            return np.empty(0)
        self.gained_here = np.concatenate([part for part, _ in parts])
        return np.concatenate([part * counts for part, counts in parts])

    def set(self, gained: np.ndarray) -> None:
        """Makes the state what it was before, and these gains."""
        numbers = iter(gained.tolist())
        for metric, after, before in zip(self.metrics, self._after, self._before, strict=True):
            metric.set_state(_sum(after, before, numbers))


def _pairs(after: Any, before: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(key, after, before) of a dict or list; before is None where a metric has made its state with this batch."""
    if isinstance(after, dict):
        for key, value in after.items():
            yield key, value, None if before is None else before.get(key)
    else:
        known = before or []
        for i, value in enumerate(after):
            yield i, value, known[i] if i < len(known) else None


def _gains(after: Any, before: Any) -> Iterator[np.ndarray]:
    if isinstance(after, (dict, list, tuple)):
        for _, new, old in _pairs(after, before):
            yield from _gains(new, old)
    elif after is not None:
        yield np.ravel(np.subtract(after, _start(after, before), dtype=np.float64))


def _start(after: Any, before: Any) -> np.ndarray:
    """The numbers before the batch: zeros where there were none, or zeros of another shape, as of unknown labels."""
    start = np.asarray(0.0 if before is None else before, np.float64)
    return start if start.shape == np.shape(after) or start.any() else np.zeros(np.shape(after))


def _sum(after: Any, before: Any, gained: Iterator[float]) -> Any:
    if isinstance(after, dict):
        return {key: _sum(new, old, gained) for key, new, old in _pairs(after, before)}
    if isinstance(after, (list, tuple)):
        return [_sum(new, old, gained) for _, new, old in _pairs(after, before)]
    if after is None:
        return None
    start = _start(after, before)
    whole = start + np.array([next(gained) for _ in range(start.size)]).reshape(start.shape)
    return whole.astype(after.dtype) if isinstance(after, np.ndarray) else type(after)(whole)
