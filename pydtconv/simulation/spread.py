"""What the slowest of several ranks takes, by how much measured times differ."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


def slowest(seconds: Sequence[float], count: float) -> float:
    """The expected maximum of so many independent draws from measured values.

    The maximum has the distribution function F ** count (H. A. David, H. N. Nagaraja, "Order Statistics", 3rd edition,
    Wiley 2003, section 2.1).  F is the empirical distribution function of the n values, so the i-th smallest is the
    maximum with probability (i / n) ** count - ((i - 1) / n) ** count.  The result is at most the largest value: of
    many more draws than values it is a lower bound.  count: it may be a fraction, of values that are maxima already.

    Raises ValueError without values.
    """
    if not len(seconds):
        raise ValueError("seconds: expected one or more, got none")
    portions = np.linspace(0, 1, len(seconds) + 1) ** count
    return float(np.sort(seconds) @ np.diff(portions))


@dataclass(frozen=True)
class Spread:
    """Measured seconds of steps of a rank, and of all reductions of a step; none where they all take the same time.

    ranks: how many made the reductions, which end with the slowest one.
    """

    steps: Sequence[float] = ()
    reductions: Sequence[float] = ()
    ranks: int = 1

    def of_steps(self, ranks: int) -> float:
        """The slowest step of so many ranks, over the mean step.  Ranks are late independently of each other."""
        return slowest(self.steps, ranks) / statistics.fmean(self.steps) if self.steps else 1.0

    def of_reductions(self, ranks: int) -> float:
        """Reductions of so many ranks, over their mean."""
        whole = self.reductions
        return slowest(whole, ranks / self.ranks) / statistics.fmean(whole) if whole else 1.0
