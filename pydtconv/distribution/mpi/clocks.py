"""How far the clocks of processes are apart.

A process asks rank 0 for its time several times.  The answer that came back the soonest is the best one: it is wrong by
half of its round trip at most (F. Cristian, "Probabilistic clock synchronization", Distributed Computing 3, 1989).
"""

from __future__ import annotations

import time

import numpy as np

from pydtconv.distribution.mpi.communicator import Communicator

_ROUNDS = 20


def clock_offset(communicator: Communicator) -> int:
    """Nanoseconds from this process's `time.perf_counter_ns` to that of rank 0; all processes must call it."""
    what, answer = "the clocks of all ranks", np.zeros(1, np.int64)
    comm, found = communicator.comm, []
    for other in range(1, communicator.size):
        for _ in range(_ROUNDS if communicator.rank in (0, other) else 0):
            if communicator.rank:
                sent = time.perf_counter_ns()
                communicator.wait(comm.Isend(answer, 0), what)
                communicator.wait(comm.Irecv(answer, 0), what)
                now = time.perf_counter_ns()
                found.append((now - sent, int(answer[0]) - (sent + now) // 2))
            else:
                communicator.wait(comm.Irecv(answer, other), what)
                answer[0] = time.perf_counter_ns()
                communicator.wait(comm.Isend(answer, other), what)
    return min(found, default=(0, 0))[1]
