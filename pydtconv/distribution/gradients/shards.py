"""Shards: each process updates its piece of every bucket, and keeps the optimizer's slots of these pieces alone.

A step has its gradients from a reduce-scatter of each bucket, and its weights from an all-gather (ZeRO; Rajbhandari et
al., SC 2020).  Weights are gathered while the next forward runs (weight_gather.py).  Slots are gathered when somebody
reads them, by all processes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from weakref import ref

import numpy as np

from pydtconv.distribution.gradients.all_reduce import gathered
from pydtconv.distribution.gradients.reduction import Reduction
from pydtconv.distribution.gradients.weight_gather import WeightGather
from pydtconv.distribution.mpi.communicator import Communicator
from pydtconv.optimizers import Optimizer
from pydtconv.support.lazy_zeros import forget, in_small_pages


class Shards:
    """Those of a store, and of the optimizer that updates it.  It is the `mirror` of slots that are not all here.

    own: this process's pieces of the flat arrays.
    """

    def __init__(self, reduction: Reduction, optimizer: Optimizer, communicator: Communicator) -> None:
        store, slots = reduction.store, optimizer._pydt_slots
        optimizer._pydt_bind(store)
        self.reduction = reduction
        self.communicator = communicator
        self.weights = WeightGather(reduction)
        self.own = [reduction.pieces(bucket)[communicator.rank] for bucket in reduction.buckets]
        self._optimizer = ref(optimizer)
        names = [name for name in optimizer.all_slots() if reduction.releases or name != "gradient_accumulator"]
        self._flat = {name: slots.flat[name] for name in names}
        self._slots = [slots.of(variable)[name] for variable in store.variables for name in names]
        self._constrained = any(getattr(variable, "constraint", None) is not None for variable in store.variables)
        self._scattered = False
        for flat in (*self._flat.values(), *((store.gradients,) if reduction.releases else ())):
            in_small_pages(flat)

    def are_of(self, optimizer: Optimizer) -> bool:
        """Whether an optimizer still has its slots here."""
        slots = optimizer._pydt_slots
        here = slots.store is self.reduction.store
        return here and all(slots.flat.get(name) is flat for name, flat in self._flat.items())

    def scatter(self) -> None:
        """Gives the memory of the other processes' pieces back."""
        if self._scattered:
            return
        self._scattered = True
        for slot in self._slots:
            slot.mirror = self
        for flat in self._flat.values():
            ends = [0, *itertools.chain.from_iterable((own.start, own.stop) for own in self.own), flat.size]
            for start, stop in zip(ends[::2], ends[1::2], strict=True):
                forget(flat, slice(start, stop))

    def to_host(self) -> None:
        """Gathers the slots, in all processes, which must all call it."""
        if not self._scattered:
            return
        self._scattered = False
        for slot in self._slots:
            slot.mirror = None
        for name, flat in self._flat.items():
            for bucket in self.reduction.buckets:
                what = f"the slots {name} ({bucket.names[0]} to {bucket.names[1]}), which all ranks gather"
                self.communicator.wait(gathered(self.communicator, flat, self.reduction.pieces(bucket)), what)

    def step(self, optimizer: Optimizer, total: Callable[[np.ndarray], np.ndarray], is_read: bool) -> None:
        """The optimizer's step; total: the sums of an array over all processes; is_read: weights are, after it."""
        optimizer.begin(self.reduction.store)
        parts = (part for part, _ in self.reduction.arrivals())
        if optimizer.clips_norms:
            optimizer.apply_parts(list(parts), total)
        else:
            for part in parts:
                optimizer.apply_part(part)
        self.weights.begin()
        if is_read or self._constrained:
            self.weights.finish()
        optimizer.end()
