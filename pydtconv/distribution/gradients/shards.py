"""Shards: each process updates its piece of every bucket, and keeps the optimizer's slots of these pieces alone.

A step has its gradients from a reduce-scatter of each bucket, and its weights from an all-gather (ZeRO; Rajbhandari et
al., SC 2020).  Weights are gathered while the next forward runs (weight_gather.py).  Where the optimizer takes its step
over each bucket by itself, it does so within backward, as soon as the sum is there and backward has read the weights
for the last time; they are gathered while the link is idle.  Slots are gathered when somebody reads them, by all
processes.

Optimizers that update whole variables have pieces of whole variables (`WholeVariables`); the variables that they make
themselves go with them.
"""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Iterable
from weakref import ref

import numpy as np

from pydtconv.distribution.gradients.accumulation import Accumulation
from pydtconv.distribution.gradients.all_reduce import gathered
from pydtconv.distribution.gradients.gradient_step import GradientStep
from pydtconv.distribution.gradients.reduction import Reduction
from pydtconv.distribution.gradients.weight_gather import WeightGather
from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.plan import Plan
from pydtconv.graph.schedule.steps import Step
from pydtconv.optimizers import Optimizer
from pydtconv.support.lazy_zeros import forget, page_of, set_pages


class ShardedStep(GradientStep):
    """The steps of one optimizer.  It is the `mirror` of slots that are not all here.

    own: this process's pieces of the flat arrays.
    """

    def __init__(
        self, reduction: Reduction, accumulation: Accumulation, communicator: Communicator, optimizer: Optimizer
    ) -> None:
        super().__init__(reduction, accumulation, communicator)
        store, flat = reduction.store, optimizer.flat_slots(reduction.store)
        self._optimizer = ref(optimizer)
        #: gradients that are accumulated, where each process has those of all variables
        self._accumulator = None if reduction.releases else flat.get("gradient_accumulator")
        self.weights = WeightGather(reduction)
        self.own = [reduction.pieces_of(bucket)[communicator.rank] for bucket in reduction.buckets]
        names = [name for name in optimizer.all_slots() if reduction.releases or name != "gradient_accumulator"]
        self._flat = {name: flat[name] for name in names}
        self._slots = [optimizer._pydt_slots.of(variable)[name] for variable in store.variables for name in names]
        #: (rank, variable): the variables that the optimizer has made, with the process that updates them
        made = optimizer.states_by_variable(store.variables)
        self._made = [(self._owner(of), state) for of, state in made if of is not None and of in store]
        self._slots += [state for _, state in self._made]
        self._constrained = any(getattr(variable, "constraint", None) is not None for variable in store.variables)
        self._scattered = False
        for array in self._flat.values():
            set_pages(array)
        if reduction.releases:
            set_pages(store.gradients, page_of(store.gradients) if self._may_update_early(optimizer) else mmap.PAGESIZE)
        reduction.beside = self.weights.carry_on
        #: the plan whose buckets are updated early; of each the last step that reads its weights
        self._plan: Plan | None = None
        self._last_read: dict[int, int] = {}
        #: whether a step updates buckets within backward, and how many it has updated
        self._early, self._updated = False, 0

    def _owner(self, variable: Variable) -> int:
        """The process whose piece a variable is."""
        number = self.reduction.store.slice_of(variable).start
        for bucket in self.reduction.buckets:
            for rank, piece in enumerate(self.reduction.pieces_of(bucket)):
                if piece.start <= number < piece.stop:
                    return rank
        return 0  # it has no elements

    def serves(self, optimizer: Optimizer) -> bool:
        slots = optimizer._pydt_slots
        here = slots.store is self.reduction.store and self._optimizer() is optimizer
        return here and all(slots.flat.get(name) is flat for name, flat in self._flat.items())

    def begin(self, optimizer: Optimizer, keeps: bool, is_read: bool, size: int, samples: int) -> None:
        if self._early:
            self.finish()
        super().begin(optimizer, keeps, is_read, size, samples)
        self._scatter()

    def _may_update_early(self, optimizer: Optimizer) -> bool:
        reduction = self.reduction
        alone = optimizer.works_in_rows and not reduction.check
        return alone and reduction.overlap and reduction.backend.in_any_order

    def _updates_early(self, optimizer: Optimizer) -> bool:
        self._early = self._reduces and optimizer.updates_next and self._may_update_early(optimizer)
        self._updated = 0
        return self._early

    def before(self, index: int, plan: Plan) -> None:
        self.weights.before(index, plan)

    def after(self, index: int, step: Step, plan: Plan) -> None:
        super().after(index, step, plan)
        if not self._early or index < plan.backward_start:
            return
        if self._plan is not plan:
            self._plan, self._last_read = plan, self.weights.last_read(plan)
        buckets = self.reduction.buckets
        while self._updated < len(buckets) and buckets[self._updated].done:
            if self._last_read.get(self._updated, 0) > index:
                break
            self._update_next()
        self.weights.carry_on()

    def _update_next(self) -> None:
        """The step over one more bucket, before the others."""
        optimizer = self._optimizer()
        assert optimizer is not None
        if not self._updated:
            optimizer.begin(self.reduction.store)
        optimizer.apply_part(self.reduction.own(self._updated))
        self.reduction.taken(self._updated)
        self.weights.add(self._updated)
        self._updated += 1

    def finish(self) -> None:
        super().finish()
        if self._early:  # an error has ended the step: others may have updated all buckets that are complete
            while self._updated < self.reduction.complete_buckets:
                self._update_next()
            self._end(len(self.reduction.buckets))
        self.weights.finish()

    def _end(self, first: int) -> None:
        """No more buckets are updated within backward.  first: that is not known to `weights`."""
        self._early, self._updated = False, 0
        self.weights.begin(first)

    def _scatter(self) -> None:
        """Gives the memory of the other processes' pieces back."""
        if self._scattered:
            return
        self._scattered = True
        self._mirror(self)
        for rank, state in self._made:
            if rank != self.communicator.rank:
                flat = state.host_array.reshape(-1)
                forget(flat, slice(0, flat.size))
        for flat in self._flat.values():
            ends = [0, *itertools.chain.from_iterable((own.start, own.stop) for own in self.own), flat.size]
            for start, stop in zip(ends[::2], ends[1::2], strict=True):
                forget(flat, slice(start, stop))

    def to_host(self) -> None:
        if not self._scattered:
            return
        self._scattered = False
        self._mirror(None)
        for rank, state in self._made:
            self.communicator.bcast(state.array, f"{state.path}, which all ranks gather", rank)
        for name, flat in self._flat.items():
            self._gather(name, flat)

    def _gather(self, name: str, flat: np.ndarray) -> None:
        for bucket in self.reduction.buckets:
            what = f"the slots {name} ({bucket.names[0]} to {bucket.names[1]}), which all ranks gather"
            self.communicator.wait(gathered(self.communicator, flat, self.reduction.pieces_of(bucket)), what)

    def _mirror(self, mirror: ShardedStep | None) -> None:
        for slot in self._slots:
            slot.mirror = mirror

    def _update(self, optimizer: Optimizer) -> None:
        store, updates = self.reduction.store, optimizer.updates_next
        arrivals = (part for part, _ in self.reduction.arrivals(self._updated))
        if not optimizer.has_own_apply:
            self._step(optimizer, arrivals)
        else:
            parts = list(arrivals)
            if not optimizer.admits(store, parts, self._total):
                return
            self._step(optimizer, parts)
        if self._whole and self._accumulator is not None:  # which all processes are to have whole
            if updates:
                self._accumulator.fill(0)
            else:
                self._gather("gradient_accumulator", self._accumulator)
        changed = updates or optimizer.use_ema
        self._end(self._updated if changed else len(self.reduction.buckets))
        if self._is_read or self._constrained:
            self.weights.finish()
        optimizer.end()

    def _step(self, optimizer: Optimizer, parts: Iterable[slice]) -> None:
        if not self._updated:
            optimizer.begin(self.reduction.store)
        if optimizer.goes_by_variable:
            self._mirror(None)  # it looks at the slots of this process's variables
        if optimizer.clips_norms:
            optimizer.apply_parts(list(parts), self._total)
        else:
            for part in parts:
                optimizer.apply_part(part)
        if optimizer.goes_by_variable and self._scattered:
            self._mirror(self)

    def _accumulate(self, optimizer: Optimizer) -> None:
        optimizer.accumulate(self.reduction.store, self.own)
