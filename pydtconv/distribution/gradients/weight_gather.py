"""The all-gather of weights that each process has updated a piece of, while the next forward runs.

Buckets are gathered from the last one to the first, as forward reads them.  Where processes may start them in any
order, the first ones, which backward completes first, are gathered within backward, when no sum is under way.
"""

from __future__ import annotations

import threading
import time
from weakref import WeakKeyDictionary

from pydtconv.distribution.gradients.reduction import Reduction
from pydtconv.distribution.gradients.window import Window
from pydtconv.distribution.mpi.communicator import Request
from pydtconv.distribution.mpi.progress import Progress
from pydtconv.graph.plan import Plan

#: buckets that are gathered together within backward: later sums, and those of metrics, come behind them
_EARLY = 1
#: seconds of the link's work that are under way: small messages to the same processes come behind it
_SECONDS = 0.05


class WeightGather:
    """That of a reduction's buckets.  Between `begin` and `finish` weights are read after `before` alone."""

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction
        self.communicator = reduction.communicator
        self._progress = Progress(self.communicator, self.carry_on)
        self._lock = threading.Lock()
        self._window = Window(_SECONDS)
        #: buckets by their numbers: those that have not begun, in their order, and those under way
        self._waiting: list[int] = []
        self._under_way: dict[int, Request] = {}
        #: of those under way the ones that began within backward
        self._early: set[int] = set()
        self._in_backward = False
        self._of_plans: WeakKeyDictionary[Plan, list[tuple[int, ...]]] = WeakKeyDictionary()

    def add(self, number: int) -> None:
        """Within backward, after the update of a bucket whose weights backward does not read any more."""
        with self._lock:
            self._waiting.append(number)
            self._in_backward = True

    def begin(self, first: int = 0) -> None:
        """After an update.  first: the number of the first bucket that was not added before.

        Others are gathered when the next step reads the first weights: metrics, say, are summed before.
        """
        with self._lock:
            self._in_backward = False
            self._window.begin()
            self._waiting = sorted({*self._waiting, *range(first, len(self.reduction.buckets))}, reverse=True)
        if not (self.reduction.overlap and self.reduction.backend.sends):
            self.finish()

    @property
    def is_over(self) -> bool:
        return not (self._waiting or self._under_way)

    def before(self, index: int, plan: Plan) -> None:
        """Waits for the weights that a step of a plan reads, or for all where backward begins."""
        if self.is_over or index > plan.backward_start:
            return
        if index == plan.backward_start:
            self.finish()
            return
        self._progress.begin()
        for number in self._numbers_of(plan)[index]:
            self._wait(number)
        self.carry_on()

    def last_read(self, plan: Plan) -> dict[int, int]:
        """Of each bucket the last step of a plan that reads its weights."""
        return {number: index for index, each in enumerate(self._numbers_of(plan)) for number in each}

    def finish(self) -> None:
        """Waits for all."""
        for number in reversed(range(len(self.reduction.buckets))):
            if self.is_over:
                break
            self._wait(number)
        self._progress.end()

    def _numbers_of(self, plan: Plan) -> list[tuple[int, ...]]:
        """For each step of a plan, the buckets of the variables that it reads."""
        if plan in self._of_plans:
            return self._of_plans[plan]
        found = self._of_plans[plan] = []
        for step in plan.steps:
            used = [*step.node.inputs, *(view.buffer for view in step.views())]
            variables = {id(v): v for v in (getattr(each, "variable", None) for each in used) if v is not None}
            found.append(tuple(sorted(self.reduction.numbers(list(variables.values())), reverse=True)))
        return found

    def _wait(self, number: int) -> None:
        if number in self._waiting or number in self._under_way:
            self.communicator.wait(_Gathered(self, number), self._told(number))

    def carry_on(self) -> None:
        """Looks at what is under way, and starts what may follow."""
        if self.is_over:
            return
        with self._lock:
            for number in [number for number, request in self._under_way.items() if request.Test()]:
                del self._under_way[number]
                if number in self._early:
                    self._early.discard(number)
                else:
                    self._window.ended(self._nbytes(number), time.monotonic())
            while self._waiting and self._may_start(self._waiting[0]):
                number = self._waiting[0]
                request = self.reduction.gather(number)
                self._under_way[number] = self.communicator.observed(request, self._told(number))
                del self._waiting[0]  # now: who looks meanwhile without the lock finds it in one of the two
                if self._in_backward:
                    self._early.add(number)
                else:
                    self._window.started(self._nbytes(number), time.monotonic())

    def _may_start(self, number: int) -> bool:
        """Those that began within backward do not count later: in other processes they may be behind all others."""
        if self._in_backward:
            return self.reduction.is_idle and len(self._under_way) < _EARLY
        return self._window.allows(self._nbytes(number))

    def _nbytes(self, number: int) -> int:
        part = self.reduction.buckets[number].part
        return (part.stop - part.start) * self.reduction.store.itemsize

    def _told(self, number: int) -> str:
        bucket = self.reduction.buckets[number]
        return f"step {self.reduction.step}: the updated weights {bucket.names[0]} to {bucket.names[1]}"


class _Gathered:
    """Done when a bucket is; until then the others are carried on, too."""

    def __init__(self, gather: WeightGather, number: int) -> None:
        self.gather, self.number = gather, number

    def Test(self) -> bool:
        self.gather.carry_on()
        return self.number not in self.gather._waiting and self.number not in self.gather._under_way
