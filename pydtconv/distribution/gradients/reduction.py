"""The sum of all processes' gradients, bucket by bucket, while backward goes on.

Gradients lie in one flat array in the order in which backward completes them.  A bucket is a slice of it; its reduction
starts when its last gradient is there and few others are under way, and is carried on between the nodes of the plan
and, by a thread, within them.  The optimizer takes its step over a bucket when that has arrived, while later ones are
still under way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import ref

import numpy as np

from pydtconv._ext.optimizers import has_nonfinite
from pydtconv.distribution.gradients.all_reduce import AllReduce, pieces_of
from pydtconv.distribution.gradients.window import Window
from pydtconv.distribution.mpi.communicator import Communicator, Request
from pydtconv.distribution.mpi.progress import Progress
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.graph.schedule.steps import Step
from pydtconv.support.lazy_zeros import forget

#: buckets' worth of complete gradients that a process may hold where it has memory for its pieces alone
_HELD = 2
#: seconds of the link's work that are under way where what is received takes memory besides
_SHARDED_SECONDS = 0.05


@dataclass
class Bucket:
    """A slice of the flat array, of variables of one dtype.  names: of its first and its last variable; missing:
    gradients still to come.

    request: of its reduction, from when that has started until the sum is about to be read; done: whether it is there.
    """

    part: slice
    names: tuple[str, str]
    dtype: str
    variables: int
    missing: int = 0
    request: Request | None = None
    done: bool = False


def buckets_of(store: ParameterStore, nbytes: int) -> list[Bucket]:
    """Neighbouring variables of one dtype, together of at most nbytes, or a single one that is larger."""
    starts = [store.slice_of(variable).start for variable in store.variables] + [store.size]
    dtypes = [variable.dtype for variable in store.variables]
    limit = max(nbytes // store.itemsize, 1)
    found: list[Bucket] = []
    first = 0
    for i in range(1, len(starts)):
        if i == len(dtypes) or starts[i + 1] - starts[first] > limit or dtypes[i] != dtypes[first]:
            names = (store.variables[first].path, store.variables[i - 1].path)
            found.append(Bucket(slice(starts[first], starts[i]), names, dtypes[first], i - first))
            first = i
    return found


class Reduction:
    """The hooks of a training step's plan that reduce its gradients.

    overlap: False starts no bucket before backward is over, and waits for each before the next one.
    shard: that of Options: this process gets the sums of its pieces alone, and sends those of weights.
    check: whether to look for gradients that are not finite.  broken: number of the first variable with one.
    """

    def __init__(
        self,
        store: ParameterStore,
        communicator: Communicator,
        backend: AllReduce,
        bucket_bytes: int,
        overlap: bool = True,
        shard: str | None = None,
    ) -> None:
        self.shard = shard
        self._store = ref(store)  # which goes with its model; reductions are kept by their stores
        self.communicator = communicator
        self.backend = backend
        self.overlap = overlap
        self._progress = Progress(communicator, self._carry_on)
        self._lock = threading.Lock()
        self._window = Window(_SHARDED_SECONDS) if shard else Window()
        self.set_buckets(bucket_bytes)
        self.step = 0
        self.check = False
        self.broken: int | None = None
        self._counts = True
        self._complete: Callable[[Variable, np.ndarray], None] | None = None
        self._number_at = {store.slice_of(variable).start: i for i, variable in enumerate(store.variables)}

    @property
    def store(self) -> ParameterStore:
        store = self._store()
        assert store is not None
        return store

    def set_buckets(self, nbytes: int) -> int:
        """Cuts the flat array into buckets of this size; returns how many."""
        self.buckets = buckets_of(self.store, nbytes)
        self._bucket_bytes = nbytes
        self._started = len(self.buckets)
        self._under_way: list[Bucket] = []
        self._bucket_at: dict[int, Bucket] = {}
        index = 0
        for bucket in self.buckets:
            for variable in self.store.variables[index : index + bucket.variables]:
                self._bucket_at[self.store.slice_of(variable).start] = bucket
            index += bucket.variables
        return len(self.buckets)

    @property
    def releases(self) -> bool:
        """Whether gradients of other processes' pieces take no memory once they are summed."""
        return self.shard == "gradients"

    def numbers(self, variables: Iterable[Variable]) -> set[int]:
        """Those of the buckets with these variables."""
        store = self.store
        places = (store.slice_of(variable).start for variable in variables if variable in store)
        return {self.buckets.index(self._bucket_at[place]) for place in places}

    def begin(
        self,
        counts: bool,
        in_blocks: bool = False,
        reduces: bool = True,
        complete: Callable[[Variable, np.ndarray], None] | None = None,
    ) -> None:
        """Before a step.  counts: False where this process has no samples, and its gradients are zero.

        in_blocks: whether the sums of the step will be read from `arrivals`, and not be looked for in the store.
        reduces: False leaves in the store the gradients of this process.  complete: what is done to each gradient
        before it is summed.
        """
        self.finish()
        free = self.backend.begin(in_blocks)
        if free is not None and not free.Test():
            self.communicator.wait(free, f"step {self.step}: the gradients, until all ranks have read them")
        self.step += 1
        self.broken = None
        self._counts, self._complete = counts, complete
        with self._lock:
            self._started, self._under_way = 0 if reduces else len(self.buckets), []
            self._window.begin()
            for bucket in self.buckets:
                bucket.missing, bucket.request, bucket.done = bucket.variables, None, False

    def finish(self) -> None:
        """Waits for what the step before has left: its gradients must not be written over while they are summed.

        After an error processes may differ in how many buckets they have started, but not in how many were complete.
        """
        with self._lock:
            self._start_complete(everything=True)
        for i, bucket in enumerate(self.buckets):
            if bucket.request is not None:
                self.communicator.wait(_Arrival(self, bucket), self.told(i))

    # --- hooks of the plan -----------------------------------------------------------------------------------------
    def before(self, index: int, step: Step) -> None:
        """Nothing."""

    def after(self, index: int, step: Step) -> None:
        """Lets the reductions under way progress."""
        if not self._under_way:
            return
        watch = self.communicator.watch
        watch.what = "the reduction of gradients during backward"
        self._carry_on()
        watch.leave()

    def gradient_ready(self, part: slice) -> None:
        """Starts the buckets that are complete, in their order, which is the same in all processes."""
        if not self._counts:
            self.store.gradients[part].fill(0)
        elif self.check and self.broken is None and has_nonfinite(self._gradient_at(part)[1].reshape(-1)):
            self.broken = self._number_at[part.start]
        if self._complete is not None:
            self._complete(*self._gradient_at(part))
        self._bucket_at[part.start].missing -= 1
        with self._lock:
            self._start_complete()
        if self.releases and self.overlap:
            self._hold_back()

    def _hold_back(self) -> None:
        """Waits until few gradients that are complete still take memory."""
        whole = [i for i, bucket in enumerate(self.buckets[: self._complete_buckets()]) if not bucket.done]
        while whole and sum(self._nbytes(self.buckets[i]) for i in whole) > _HELD * self._bucket_bytes:
            first = whole.pop(0)
            self.communicator.wait(_Arrival(self, self.buckets[first]), self.told(first))

    def _complete_buckets(self) -> int:
        """How many buckets, from the first one on, are complete."""
        return next((i for i, bucket in enumerate(self.buckets) if bucket.missing), len(self.buckets))

    def _release(self, bucket: Bucket) -> None:
        """Gives back the memory of the other processes' pieces, which these have read."""
        if self.releases:
            for rank, piece in enumerate(self.pieces(bucket)):
                if rank != self.communicator.rank:
                    forget(self.store.gradients, piece, shared=not self.backend.sends)

    def _gradient_at(self, part: slice) -> tuple[Variable, np.ndarray]:
        variable = self.store.variables[self._number_at[part.start]]
        return variable, self.store.gradient_of(variable)

    def _carry_on(self) -> None:
        """Looks at what is under way, and starts what may follow."""
        with self._lock:
            for bucket in self._under_way:
                assert bucket.request is not None
                bucket.done = bucket.request.Test()
                if bucket.done:
                    self._window.ended(self._nbytes(bucket), time.monotonic())
                    self._release(bucket)
            self._under_way = [bucket for bucket in self._under_way if not bucket.done]
            self._start_complete()

    def _start_complete(self, everything: bool = False) -> None:
        """Starts complete buckets, of messages not more than the window allows, but for everything."""
        while self.overlap and self._started < len(self.buckets):
            bucket = self.buckets[self._started]
            waits = self.backend.sends and not everything and not self._window.allows(self._nbytes(bucket))
            if bucket.missing or waits:
                break
            if self.backend.sends:
                self._progress.begin()
            self._start()

    def _nbytes(self, bucket: Bucket) -> int:
        return (bucket.part.stop - bucket.part.start) * self.store.itemsize

    def _words(self, bucket: Bucket) -> int:
        """Of the flat array, in a number of the bucket's."""
        return np.dtype(bucket.dtype).itemsize // self.store.itemsize

    def _place(self, bucket: Bucket) -> slice:
        """The bucket's part of the flat array, counted in its own numbers."""
        words = self._words(bucket)
        return slice(bucket.part.start // words, bucket.part.stop // words)

    def pieces(self, bucket: Bucket) -> list[slice]:
        """What each process has of a bucket, in the flat array."""
        words = self._words(bucket)
        pieces = pieces_of(self._place(bucket), self.communicator.size)
        return [slice(piece.start * words, piece.stop * words) for piece in pieces]

    def gather(self, bucket: Bucket) -> Request:
        """Starts to give all processes the weights of a bucket."""
        return self.backend.all_gather(self._numbers(bucket, self.store.parameters), self._place(bucket))

    def _numbers(self, bucket: Bucket, flat: np.ndarray) -> np.ndarray:
        return flat if flat.dtype == bucket.dtype else flat.view(bucket.dtype)

    def _start(self) -> None:
        bucket = self.buckets[self._started]
        numbers = self._numbers(bucket, self.store.gradients)
        start = self.backend.reduce_scatter if self.shard else self.backend.start
        request = start(numbers, self._place(bucket))
        bucket.request = self.communicator.observed(request, self.told(self._started))
        self._under_way.append(bucket)
        self._window.started(self._nbytes(bucket), time.monotonic())
        self._started += 1

    # --- after backward --------------------------------------------------------------------------------------------
    def arrivals(self) -> Iterator[tuple[slice, np.ndarray | None]]:
        """Slices in their order, each when its sum is there: with the sum, or None where it lies in the store."""
        for bucket in self.buckets:
            bucket.missing = 0
        try:
            for i, bucket in enumerate(self.buckets):
                if not self.overlap:
                    self._start()
                self.communicator.wait(_Arrival(self, bucket), self.told(i))
                bucket.request = None
                if self.shard:
                    yield self.pieces(bucket)[self.communicator.rank], None
                    continue
                words = self._words(bucket)
                for part, total in self.backend.blocks(self._place(bucket), bucket.dtype):
                    yield slice(part.start * words, part.stop * words), total
        finally:
            self.stop()

    def stop(self) -> None:
        """Nothing is carried on any more beside what this process does."""
        self._progress.end()
        self.backend.rest()

    def told(self, index: int) -> str:
        """A bucket in words."""
        first, last = self.buckets[index].names
        return f"step {self.step}: bucket {index + 1} of {len(self.buckets)} of the gradients ({first} to {last})"


class _Arrival:
    """Done when a bucket is; until then those that follow are carried on, too."""

    def __init__(self, reduction: Reduction, bucket: Bucket) -> None:
        self.reduction, self.bucket = reduction, bucket

    def Test(self) -> bool:
        self.reduction._carry_on()
        return self.bucket.done


class Averages:
    """Moving statistics, which each process updates with its own samples: their mean, weighted by samples.

    So all processes have the same variables after each step, whoever writes or evaluates them.
    """

    def __init__(self, variables: list[Any], communicator: Communicator) -> None:
        self.variables = variables
        self.communicator = communicator
        size = sum(variable.array.size for variable in variables)
        self._flat = np.zeros(size, np.result_type("float32", *{variable.dtype for variable in variables}))
        self._request: Request | None = None

    def start(self, portion: float) -> None:
        """After forward.  portion: this process's share of the samples."""
        at = 0
        for variable in self.variables:
            value = variable.array.reshape(-1)
            self._flat[at : at + value.size] = value * portion if portion else 0
            at += value.size
        if at:
            request = self.communicator.comm.Iallreduce(self.communicator.mpi.IN_PLACE, self._flat)
            self._request = self.communicator.observed(request, "the mean of the moving statistics")

    def finish(self) -> None:
        """Puts the means into the variables."""
        if self._request is None:
            return
        self.communicator.wait(self._request, "the mean of the moving statistics")
        self._request = None
        at = 0
        for variable in self.variables:
            variable.array[...] = self._flat[at : at + variable.array.size].reshape(variable.shape)
            at += variable.array.size
