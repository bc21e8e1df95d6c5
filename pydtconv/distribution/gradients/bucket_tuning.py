"""The size of the buckets, found by trying: each size for a few steps of training, all of which count."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

_MIB = 1 << 20
SIZES = (1, 2, 4, 8, 16, 32, 64)
_WARM, _STEPS = 2, 3


class BucketTuning:
    """Tries sizes and keeps the fastest.  Its decisions are the same in all processes.

    set_buckets: takes bytes and returns the number of buckets.  slowest: the largest of all processes' numbers.
    """

    def __init__(self, set_buckets: Callable[[int], int], slowest: Callable[[np.ndarray], np.ndarray]) -> None:
        self.set_buckets = set_buckets
        self.slowest = slowest
        self.chosen: int | None = None
        counts = {size: set_buckets(size * _MIB) for size in SIZES}
        # sizes that cut alike are one
        self.sizes = [size for i, size in enumerate(SIZES) if counts[size] not in [counts[s] for s in SIZES[:i]]]
        self._times: list[list[float]] = [[] for _ in self.sizes]
        self._step, self._samples, self._start = 0, -1, 0.0

    def begin(self, samples: int) -> None:
        """Before a step on a batch of so many samples; those of other sizes than the first are not looked at."""
        if self._samples < 0:
            self._samples = samples
        if self.chosen is None and samples == self._samples:
            self.set_buckets(self.sizes[self._candidate] * _MIB)
            self._start = time.perf_counter()

    def end(self, samples: int) -> bool:
        """After it.  Returns whether the size was chosen now."""
        if self.chosen is not None or samples != self._samples:
            return False
        if self._step >= _WARM:
            self._times[self._candidate].append(time.perf_counter() - self._start)
        self._step += 1
        if self._step < _WARM + _STEPS * len(self.sizes):
            return False
        times = self.slowest(np.array([min(times) for times in self._times]))
        self.chosen = self.sizes[int(times.argmin())]
        self.set_buckets(self.chosen * _MIB)
        return True

    @property
    def _candidate(self) -> int:
        return max(self._step - _WARM, 0) // _STEPS
