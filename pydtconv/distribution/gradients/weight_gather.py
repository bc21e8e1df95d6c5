"""The all-gather of weights that each process has updated a piece of, while the next forward runs.

Buckets are gathered from the last one to the first, as forward reads them.
"""

from __future__ import annotations

import threading
import time
from weakref import WeakKeyDictionary

from pydtconv.distribution.gradients.buckets import Bucket
from pydtconv.distribution.gradients.reduction import Reduction
from pydtconv.distribution.gradients.window import Window
from pydtconv.distribution.mpi.communicator import Request
from pydtconv.distribution.mpi.progress import Progress
from pydtconv.graph.plan import Plan


class WeightGather:
    """That of a reduction's buckets.  Between `begin` and `finish` weights are read after `before` alone."""

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction
        self.communicator = reduction.communicator
        self._progress = Progress(self.communicator, self._carry_on)
        self._lock = threading.Lock()
        self._window = Window()
        #: buckets by their numbers: those that have not begun, in their order, and those under way
        self._waiting: list[int] = []
        self._under_way: dict[int, Request] = {}
        self._of_plans: WeakKeyDictionary[Plan, list[tuple[int, ...]]] = WeakKeyDictionary()

    def begin(self) -> None:
        """After an update."""
        with self._lock:
            self._window.begin()
            self._waiting = list(reversed(range(len(self.reduction.buckets))))
        self._carry_on()
        if self.reduction.overlap and self.reduction.backend.sends:
            self._progress.begin()
        else:
            self.finish()

    @property
    def is_over(self) -> bool:
        return not (self._waiting or self._under_way)

    def before(self, index: int, plan: Plan) -> None:
        """Waits for the weights that a step of a plan reads, or for all where backward begins."""
        if self.is_over:
            return
        if index >= plan.backward_start:
            self.finish()
            return
        if plan not in self._of_plans:
            self._of_plans[plan] = self._numbers(plan)
        for number in self._of_plans[plan][index]:
            self._wait(number)
        self._carry_on()

    def finish(self) -> None:
        """Waits for all."""
        for number in reversed(range(len(self.reduction.buckets))):
            if self.is_over:
                break
            self._wait(number)
        self._progress.end()

    def _numbers(self, plan: Plan) -> list[tuple[int, ...]]:
        """For each step of a plan, the buckets of the variables that it reads."""
        found = []
        for step in plan.steps:
            used = [*step.node.inputs, *(view.buffer for view in step.views())]
            variables = {id(v): v for v in (getattr(each, "variable", None) for each in used) if v is not None}
            found.append(tuple(sorted(self.reduction.numbers(list(variables.values())), reverse=True)))
        return found

    def _wait(self, number: int) -> None:
        if number in self._waiting or number in self._under_way:
            self.communicator.wait(_Gathered(self, number), self._told(self.reduction.buckets[number]))

    def _carry_on(self) -> None:
        """Looks at what is under way, and starts what may follow."""
        with self._lock:
            for number in [number for number, request in self._under_way.items() if request.Test()]:
                del self._under_way[number]
                self._window.ended(self._nbytes(number), time.monotonic())
            while self._waiting and self._window.allows(self._nbytes(self._waiting[0])):
                number = self._waiting[0]
                bucket = self.reduction.buckets[number]
                request = self.reduction.gather(bucket)
                self._under_way[number] = self.communicator.observed(request, self._told(bucket))
                del self._waiting[0]  # now: who looks meanwhile without the lock finds it in one of the two
                self._window.started(self._nbytes(number), time.monotonic())

    def _nbytes(self, number: int) -> int:
        part = self.reduction.buckets[number].part
        return (part.stop - part.start) * self.reduction.store.itemsize

    def _told(self, bucket: Bucket) -> str:
        return f"step {self.reduction.step}: the updated weights {bucket.names[0]} to {bucket.names[1]}"


class _Gathered:
    """Done when a bucket is; until then the others are carried on, too."""

    def __init__(self, gather: WeightGather, number: int) -> None:
        self.gather, self.number = gather, number

    def Test(self) -> bool:
        self.gather._carry_on()
        return self.number not in self.gather._waiting and self.number not in self.gather._under_way
