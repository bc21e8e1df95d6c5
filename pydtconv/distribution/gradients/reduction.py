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
from weakref import ref

import numpy as np

from pydtconv._ext.optimizers import has_nonfinite
from pydtconv.distribution.gradients.all_reduce import AllReduce
from pydtconv.distribution.gradients.buckets import Bucket, Pieces, buckets_of
from pydtconv.distribution.gradients.window import Window
from pydtconv.distribution.mpi.communicator import Communicator, Request
from pydtconv.distribution.mpi.progress import Progress
from pydtconv.graph.ir.variable import Variable
from pydtconv.graph.memory.parameter_store import ParameterStore
from pydtconv.graph.schedule.steps import Step
from pydtconv.support.lazy_zeros import forget, page_of

#: buckets' worth of complete gradients that a process may hold where it has memory for its pieces alone
_HELD = 2
#: seconds of the link's work that are under way where what is received takes memory besides
_SHARDED_SECONDS = 0.05


class Reduction:
    """The hooks of a training step's plan that reduce its gradients.

    overlap: False starts no bucket before backward is over, and waits for each before the next one.
    pieces: where this process gets the sum of its piece of each bucket alone, not of all of it.
    releases: whether gradients of other processes' pieces take no memory once they are summed.
    check: whether to look for gradients that are not finite.  broken: number of the first variable with one.
    peers: the processes with the same columns of variables as this one, whose gradients of these are summed.
    """

    def __init__(
        self,
        store: ParameterStore,
        communicator: Communicator,
        backend: AllReduce,
        bucket_bytes: int,
        overlap: bool = True,
        pieces: Pieces | None = None,
        releases: bool = False,
        check: bool = False,
        peers: Communicator | None = None,
    ) -> None:
        self.pieces, self.releases, self.check = pieces, releases, check
        self.peers = peers
        self._store = ref(store)  # which goes with its model; reductions are kept by their stores
        self.communicator = communicator
        self.backend = backend
        self.overlap = overlap
        self._progress = Progress(communicator, self._carry_on)
        self._lock = threading.Lock()
        self._window = Window(_SHARDED_SECONDS) if pieces else Window()
        self.set_buckets(bucket_bytes)
        self.step = 0
        self.broken: int | None = None
        self._counts, self._keeps_done = True, False
        self._complete: Callable[[Variable, np.ndarray], None] | None = None
        #: what else is carried on
        self.beside: Callable[[], None] | None = None
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
        keeps_done: bool = False,
    ) -> None:
        """Before a step.  counts: False where this process has no samples, and its gradients are zero.

        in_blocks: whether the sums of the step will be read from `arrivals`, and not be looked for in the store.
        reduces: False leaves in the store the gradients of this process.  complete: what is done to each gradient
        before it is summed.  keeps_done: leaves it to `taken` to release what is summed.
        """
        self.finish()
        self._keeps_done = keeps_done
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

    @property
    def is_idle(self) -> bool:
        """Whether no sum is under way."""
        return not self._under_way

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
        whole = [i for i, bucket in enumerate(self.buckets[: self.complete_buckets]) if not bucket.done]
        while whole and sum(self._nbytes(self.buckets[i]) for i in whole) > _HELD * self._bucket_bytes:
            first = whole.pop(0)
            self.communicator.wait(_Arrival(self, self.buckets[first]), self.told(first))

    @property
    def complete_buckets(self) -> int:
        """How many buckets, from the first one on, are complete."""
        return next((i for i, bucket in enumerate(self.buckets) if bucket.missing), len(self.buckets))

    def _release(self, bucket: Bucket) -> None:
        """Gives back the memory of the other processes' pieces, which these have read."""
        if self.releases and not self._keeps_done:
            for rank, piece in enumerate(self.pieces_of(bucket)):
                if rank != self.communicator.rank:
                    forget(self.store.gradients, piece, shared=self.backend.shares)

    def taken(self, index: int) -> None:
        """The optimizer has taken its step over a bucket, and over all before it."""
        part = self.buckets[index].part
        self.buckets[index].request = None
        if self.releases and self._keeps_done:  # from the start: large pages have parts of several buckets
            forget(self.store.gradients, slice(0, part.stop), page=page_of(self.store.gradients))

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
        if self.beside is not None:
            self.beside()

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

    def pieces_of(self, bucket: Bucket) -> list[slice]:
        """What each process has of a bucket, in the flat array; all of it without pieces."""
        if self.pieces is None:
            return [bucket.part] * self.communicator.size
        return [bucket.in_words(piece) for piece in self.pieces(bucket)]

    def own(self, index: int) -> slice:
        """This process's piece of a bucket."""
        return self.pieces_of(self.buckets[index])[self.communicator.rank]

    def gather(self, index: int) -> Request:
        """Starts to give all processes the weights of a bucket."""
        assert self.pieces is not None
        bucket = self.buckets[index]
        return self.backend.all_gather(bucket.numbers(self.store.parameters), self.pieces(bucket), index)

    def _start(self) -> None:
        bucket = self.buckets[self._started]
        numbers = bucket.numbers(self.store.gradients)
        if bucket.cut:
            assert self.peers is not None
            request = self.peers.comm.Iallreduce(self.peers.mpi.IN_PLACE, numbers[bucket.place])
        elif self.pieces is None:
            request = self.backend.start(numbers, bucket.place)
        else:
            request = self.backend.reduce_scatter(numbers, self.pieces(bucket))
        bucket.request = self.communicator.observed(request, self.told(self._started))
        self._under_way.append(bucket)
        self._window.started(self._nbytes(bucket), time.monotonic())
        self._started += 1

    # --- after backward --------------------------------------------------------------------------------------------
    def arrivals(self, first: int = 0) -> Iterator[tuple[slice, np.ndarray | None]]:
        """Slices in their order, each when its sum is there: with the sum, or None where it lies in the store.

        first: the number of the first bucket.
        """
        for bucket in self.buckets:
            bucket.missing = 0
        try:
            for i, bucket in enumerate(self.buckets[first:], first):
                if not self.overlap:
                    self._start()
                self.communicator.wait(_Arrival(self, bucket), self.told(i))
                if bucket.cut:
                    yield bucket.part, None
                elif self.pieces is not None:
                    yield self.own(i), None
                else:
                    for part, total in self.backend.blocks(bucket.place, bucket.dtype):
                        yield bucket.in_words(part), total
                self.taken(i)
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
