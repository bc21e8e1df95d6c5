"""Batch normalization's statistics over the samples of all processes."""

from __future__ import annotations

import numpy as np

from pydtconv.distribution.mpi.communicator import Communicator


class Synchronizer:
    """`ops.normalization.Synchronizer` over a communicator.  counts: False where this process's samples do not count.

    Sums travel in float64.
    """

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator
        self.counts = True

    def moments(self, mean: np.ndarray, variance: np.ndarray, rows: int) -> int:
        """mean = sum(n_r mean_r) / n;  variance = sum(n_r (variance_r + (mean_r - mean)^2)) / n."""
        c = mean.size
        own = np.zeros(2 * c + 1)
        if self.counts:
            own[:c], own[c:-1], own[-1] = mean, variance, rows
        told = self.communicator.allgather(own, "the statistics of a normalization")
        n = told[:, -1:]
        total = float(n.sum())
        whole = (n * told[:, :c]).sum(0) / total
        variance[...] = (n * (told[:, c:-1] + np.square(told[:, :c] - whole))).sum(0) / total
        mean[...] = whole
        return int(total)

    def sums(self, sum_dy: np.ndarray, sum_dy_xhat: np.ndarray, rows: int) -> int:
        """Sums over the rows of all processes."""
        c = sum_dy.size
        own = np.zeros(2 * c + 1)
        if self.counts:
            own[:c], own[c:-1], own[-1] = sum_dy, sum_dy_xhat, rows
        self.communicator.allreduce(own, "the sums of a normalization's gradient")
        sum_dy[...], sum_dy_xhat[...] = own[:c], own[c:-1]
        return int(own[-1])
