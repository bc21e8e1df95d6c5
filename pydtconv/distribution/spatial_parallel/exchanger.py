"""Messages between the processes that share images: persistent ones, between buffers that stay where they are."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pydtconv.distribution.mpi.communicator import Communicator, Request
from pydtconv.distribution.mpi.progress import Progress

_TAG = 7


class Exchanger:
    """`ops.exchange.Exchanger` over MPI.  ranks: of the processes of the group, in its order.

    carries_on: whether a thread lets messages go on while this process computes.  Between processes of one host they
    are copied when they are waited for, which takes less time than the thread.
    """

    def __init__(self, communicator: Communicator, ranks: Sequence[int], carries_on: bool = True) -> None:
        self.communicator = communicator
        self.ranks = tuple(ranks)
        self.lock = threading.Lock()
        self.under_way: Request | None = None
        self._progress = Progress(communicator, self._look) if carries_on else None

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """While messages go on beside what this process computes."""
        if self._progress is None:
            yield
            return
        self._progress.begin()
        try:
            yield
        finally:
            self._progress.end()

    def _look(self) -> None:
        request = self.under_way
        if request is not None:
            request.Test()

    def transfer(
        self, sends: Sequence[tuple[int, np.ndarray]], receives: Sequence[tuple[int, np.ndarray]], what: str
    ) -> _Transfer:
        return _Transfer(self, sends, receives, what)


class _Transfer:
    """Messages between the same buffers again and again.

    Those between two processes start in the order of the plan in both: one tag is enough.
    """

    def __init__(
        self,
        exchanger: Exchanger,
        sends: Sequence[tuple[int, np.ndarray]],
        receives: Sequence[tuple[int, np.ndarray]],
        what: str,
    ) -> None:
        self.exchanger, self.communicator = exchanger, exchanger.communicator
        comm, mpi, ranks = self.communicator.comm, self.communicator.mpi, exchanger.ranks
        self._buffers = [buffer for _, buffer in (*sends, *receives)]  # the messages' memory
        messages = [_message(mpi, buffer) for buffer in self._buffers]
        outgoing, incoming = messages[: len(sends)], messages[len(sends) :]
        self._requests = [
            *(comm.Recv_init(into, ranks[other], _TAG) for (other, _), into in zip(receives, incoming, strict=True)),
            *(comm.Send_init(of, ranks[other], _TAG) for (other, _), of in zip(sends, outgoing, strict=True)),
        ]
        for _, _, layout in messages:
            if layout != mpi.BYTE:
                layout.Free()  # requests that use it keep it
        weakref.finalize(self, _free, mpi, self._requests).atexit = False  # MPI ends before that
        others = sorted({ranks[other] for other, _ in (*sends, *receives)})
        self.what = f"{what} with rank{'s' * (len(others) > 1)} {' and '.join(map(str, others))}"
        self._under_way: Request | None = None

    def start(self) -> None:
        """One transfer after the other is under way: each is waited for before the next one starts."""
        mpi = self.communicator.mpi
        with self.exchanger.lock:
            mpi.Prequest.Startall(self._requests)
        request = self.communicator.observed(_All(mpi, self._requests, self.exchanger.lock), self.what)
        self._under_way = self.exchanger.under_way = request

    def wait(self) -> None:
        if self._under_way is not None:
            self.communicator.wait(self._under_way, self.what)
            self._under_way = self.exchanger.under_way = None


def _free(mpi: Any, requests: list[Any]) -> None:
    if not mpi.Is_finalized():
        for request in requests:
            request.Free()


class _All:
    """Done when all requests are; two threads may ask."""

    def __init__(self, mpi: Any, requests: list[Any], lock: threading.Lock) -> None:
        self.mpi, self.requests, self.lock = mpi, requests, lock
        self.done = False

    def Test(self) -> bool:
        with self.lock:
            self.done = self.done or bool(self.mpi.Request.Testall(self.requests))
        return self.done


def _message(mpi: Any, buffer: np.ndarray) -> tuple[Any, int, Any]:
    """What MPI sends of an array, or receives into it: its memory from the first byte on, and a number of layouts.

    A box of an array lies there as rows with gaps between them, which the layout steps over.
    """
    run = buffer.itemsize
    gaps: list[tuple[int, int]] = []
    for extent, stride in zip(reversed(buffer.shape), reversed(buffer.strides), strict=True):
        if not gaps and (extent == 1 or stride == run):
            run *= extent
        elif extent != 1:
            gaps.append((extent, stride))
    nbytes = run + sum((extent - 1) * stride for extent, stride in gaps)
    memory = mpi.memory.fromaddress(buffer.ctypes.data, nbytes)
    if not gaps:
        return memory, run, mpi.BYTE
    layouts = [mpi.BYTE.Create_contiguous(run)]
    for extent, stride in gaps:
        layouts.append(layouts[-1].Create_hvector(extent, 1, stride))
    for inner in layouts[:-1]:
        inner.Free()
    return memory, 1, layouts[-1].Commit()
