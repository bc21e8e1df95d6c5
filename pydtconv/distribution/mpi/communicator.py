"""Collective operations that never wait without looking around.

Every operation is non-blocking inside; waiting for it is a loop that lets MPI progress, lets other threads and
processes run, and hands the time to a `Watch` (see watch.py), which ends everything when it has been too long.
"""

from __future__ import annotations

import os
import pickle
import time
import zlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from pydtconv import replica
from pydtconv.distribution.mpi.watch import Watch

#: rounds of polling before a waiting process goes to sleep between them, and for how long
_POLLS, _NAP = 2000, 2e-4


class Request(Protocol):
    """What may be waited for; Test lets the communication progress and says whether it is done."""

    def Test(self) -> bool: ...


class _Observed:
    """A request that tells an observer when it began and when it was found to be done."""

    def __init__(self, request: Request, what: str, observer: replica.Observer) -> None:
        self.request = request
        self.what = what
        self.observer: replica.Observer | None = observer
        self.start = time.perf_counter_ns()

    def Test(self) -> bool:
        done = self.request.Test()
        if done and self.observer is not None:
            self.observer.communicated(self.what, self.start, time.perf_counter_ns())
            self.observer = None
        return done


class Communicator:
    """Collective operations of all processes over a communicator of their own.

    All of them must call the same operations in the same order.  `what` says what an operation is for, in messages.
    done: operations so far, by which processes tell whether they stand between the same two.
    """

    def __init__(self, comm: Any, mpi: Any, watch: Watch) -> None:
        self.comm = comm.Dup()
        self.mpi = mpi
        self.rank: int = comm.rank
        self.size: int = comm.size
        self.watch = watch
        self.done = 0

    def wait(self, request: Request, what: str) -> None:
        """Waits until the request is done."""
        self.watch.enter(what)
        start = time.perf_counter_ns()
        polls = 0
        while not request.Test():
            polls += 1
            if polls < _POLLS:
                os.sched_yield()
            else:
                time.sleep(_NAP)
            if polls % 64 == 0:
                self.watch.look()
        self.watch.leave()
        observer = replica.current().observer
        if observer is not None:
            observer.waited(what, start, time.perf_counter_ns())

    def observed(self, request: Request, what: str) -> Request:
        """The request, such that an observer of communication, if there is one, is told when it is done."""
        observer = replica.current().observer
        return request if observer is None else _Observed(request, what, observer)

    def allreduce(self, array: np.ndarray, what: str) -> np.ndarray:
        """The sum of all processes' arrays, in place."""
        if array.size:
            self.wait(self.comm.Iallreduce(self.mpi.IN_PLACE, array), what)
            self.done += 1
        return array

    def bcast(self, array: np.ndarray, what: str, root: int = 0) -> None:
        """The array of one process, in place."""
        if array.size:
            self.wait(self.comm.Ibcast(array, root), what)
            self.done += 1

    def allgather(self, row: Sequence[float] | np.ndarray, what: str) -> np.ndarray:
        """The rows of all processes, (ranks, n), in their dtype."""
        own = np.ascontiguousarray(row)
        rows = np.empty((self.size, *own.shape), own.dtype)
        self.wait(self.comm.Iallgather(own, rows), what)
        self.done += 1
        return rows

    def allgatherv(self, array: np.ndarray, what: str) -> np.ndarray:
        """The arrays of all processes, which agree but for the first axis, one after the other.

        Raises RuntimeError where others have called something else.
        """
        array = np.ascontiguousarray(array)
        call = zlib.crc32(f"{what} {array.dtype} {array.shape[1:]}".encode())
        lengths, calls = self.allgather(np.array([len(array), call]), what).T
        others = " and ".join(f"rank {rank}" for rank in np.flatnonzero(calls != call))
        if others:
            raise RuntimeError(
                f"rank {self.rank}, in {what}: expected all ranks to call the same methods of the same model in the "
                f"same order, got another call from {others}"
            )
        inner = int(np.prod(array.shape[1:]))
        whole = np.empty((int(lengths.sum()), *array.shape[1:]), array.dtype)
        counts = (lengths * inner).tolist()
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).tolist()
        kind = self.mpi._typedict[array.dtype.char]
        self.wait(self.comm.Iallgatherv([array, array.size, kind], [whole, counts, starts, kind]), what)
        return whole

    def bcast_object(self, value: Any, what: str, root: int = 0) -> Any:
        """The value of one process, pickled on the way."""
        data = np.frombuffer(pickle.dumps(value if self.rank == root else None), np.uint8).copy()
        size = np.array([data.size])
        self.bcast(size, what, root)
        data = data if self.rank == root else np.empty(int(size[0]), np.uint8)
        self.bcast(data, what, root)
        return pickle.loads(data.tobytes())
