"""The update of variables of which each process of a group has some columns.

Their gradients are those of the whole batch without a sum over the group: it is the columns' inputs that are gathered,
and their gradients that are summed.
"""

from __future__ import annotations

import numpy as np

from pydtconv.distribution.gradients.accumulation import Accumulation
from pydtconv.distribution.gradients.bucket_tuning import BucketTuning
from pydtconv.distribution.gradients.gradient_step import GradientStep
from pydtconv.distribution.gradients.reduction import Reduction
from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.optimizers import Optimizer


class ColumnStep(GradientStep):
    """group: the processes that together have all columns."""

    def __init__(
        self,
        reduction: Reduction,
        accumulation: Accumulation,
        communicator: Communicator,
        tuning: BucketTuning | None,
        group: Communicator,
    ) -> None:
        super().__init__(reduction, accumulation, communicator, tuning)
        self.group = group

    def _update(self, optimizer: Optimizer) -> None:
        if optimizer.works_in_parts and not optimizer.clips_norms:
            super()._update(optimizer)
            return
        store, parts = self.reduction.store, [bucket.part for bucket in self.reduction.buckets]
        for _ in self.reduction.arrivals():
            pass
        if optimizer.admits(store, parts, self._total):
            optimizer.begin(store)
            optimizer.apply_parts(parts, self._total, self._counts)
            optimizer.end()

    def _total(self, own: np.ndarray) -> np.ndarray:
        return self.group.allreduce(own, "the norms and the check of the gradients")

    def _counts(self, part: slice) -> bool:
        """Of what all processes have, the first one's norms."""
        return self.group.rank == 0 or any(
            bucket.cut and bucket.part.start <= part.start < bucket.part.stop for bucket in self.reduction.buckets
        )
