"""One step that a user has written, as the processes that train together run it: `pydtconv.engine.sharing.Sharing`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pydtconv import tree
from pydtconv.distribution.data_parallel.metric_totals import MetricTotals
from pydtconv.distribution.gradients.accumulation import Accumulation, summed
from pydtconv.distribution.gradients.averages import Averages
from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.graph import Executor
from pydtconv.graph.ir.variable import AGGREGATIONS
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.trainers.metric_updates import counts_by_portion


class SharedStep:
    """portion: this process's share of the samples.  counts: whether its results count; False where another process
    has the same ones, of the same images.  small, large: communicators; numbers of arrays take the latter.

    averages_of: the variables that a plan's forward changes by this process's samples alone.
    accumulation: of gradients between updates; is_read: whether others may read what optimizers have accumulated.
    noticed: the number of the signal that asks this process to end, 0 for none; asked: that of any process.
    """

    def __init__(
        self,
        name: str,
        portion: float,
        counts: bool,
        small: Communicator,
        large: Communicator,
        averages_of: Callable[[Executor], Averages],
        accumulation: Accumulation,
        is_read: bool,
        noticed: int = 0,
    ) -> None:
        self.name = name
        self.portion = portion
        self._counted = portion if counts else 0.0
        self.small, self.large = small, large
        self.asked: int | None = None
        self._averages_of = averages_of
        self._accumulation, self._is_read = accumulation, is_read
        self._noticed = noticed
        self._totals: list[MetricTotals] = []

    def check(self, told: str) -> None:
        digest = hashlib.sha256(told.encode()).digest()
        own = np.array([*digest, self._noticed], np.int64)
        rows = self.small.allgather(own, f"the comparison of {self.name}")
        self.asked = next((int(number) for number in rows[:, -1] if number), None)
        others = np.flatnonzero((rows[:, :-1] != rows[0, :-1]).any(1))
        if others.size:
            raise RuntimeError(
                f"{self.name}: expected the same gradients, updates and assignments on all ranks, got others on "
                f"{' and '.join(f'rank {rank}' for rank in others)}: their number must not depend on the batch"
            )

    def mean(self, arrays: Sequence[np.ndarray], what: str) -> list[np.ndarray]:
        return summed(self.large, [array * array.dtype.type(self._counted) for array in arrays], what)

    def total(self, arrays: Sequence[np.ndarray], what: str) -> list[np.ndarray]:
        return summed(self.large, arrays if self.portion else [np.zeros_like(array) for array in arrays], what)

    def before_update(self, optimizer: Any, store: ParameterStore, own: bool) -> None:
        if own:
            self._accumulation.sum_store(optimizer, store, self.portion, self._is_read)
        else:
            self._accumulation.begin(optimizer, store.variables, whole=True)

    def ran(self, executor: Executor) -> None:
        averages = self._averages_of(executor)
        if averages.variables:
            averages.start(self.portion)
            averages.finish()

    def assigned(self, variable: Any, value: np.ndarray) -> np.ndarray:
        what = f"the value of variable {variable.path!r}"
        value = np.array(np.broadcast_to(value, variable.shape), variable.dtype)
        if variable.aggregation == "mean":
            return self.mean([value], what)[0].astype(variable.dtype)
        if variable.aggregation == "sum":
            return self.small.allreduce(value if self._counted else np.zeros_like(value), what)
        if variable.aggregation == "only_first_replica":
            self.small.bcast(value, what)
            return value
        digest = np.frombuffer(hashlib.sha256(value.tobytes()).digest(), np.uint8)
        if (self.small.allgather(digest, what) != digest).any():
            raise ValueError(
                f"{self.name}: variable {variable.path!r} is assigned other values on other ranks, each of its share "
                f"of the batch: expected an aggregation of {AGGREGATIONS[1:]}, got {variable.aggregation!r}"
            )
        return value

    def update(self, update: Any, args: Any, kwargs: Any) -> None:
        metric = update.metric
        if not update.method.startswith("update"):  # such as reset_state
            self.settle()
            getattr(metric, update.method)(*args, **kwargs)
            return
        if not any(metric is known for totals in self._totals for known in totals.metrics):
            self._totals.append(MetricTotals([metric]))
        if counts_by_portion(metric, update.method, tree.flatten(args), kwargs):
            kwargs = {**kwargs, "sample_weight": self.portion}
        getattr(metric, update.method)(*args, **kwargs)

    def settle(self) -> None:
        if not self._totals:
            return
        gains = [totals.gained() for totals in self._totals]
        own = np.concatenate(gains) if self._counted else np.zeros(sum(gain.size for gain in gains))
        self.small.allreduce(own, "the sums of the metrics")
        start = 0
        for totals, gain in zip(self._totals, gains, strict=True):
            totals.set(own[start : start + gain.size])
            start += gain.size
        self._totals = []
