"""One rank of `python -m benchmarks.links`: steps without communication, blocking and overlapped, as JSON from rank 0.

All modes take turns in the same processes.  Without communication the ranks train by themselves at the same time, each
with its share of the batch and the plan that they have together: so ranks that share a core slow each other down alike
in all modes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.networks import Case, compiled
from pydtconv import config, distribution, replica
from pydtconv.distribution.data_parallel.worker import Worker
from pydtconv.distribution.mpi.launch import World, world
from pydtconv.profiling import Profiler

MODES = ("none", "blocking", "overlapped")
_TURNS = 2
#: bytes of a message that takes as long as any small one
_SMALL = 100
#: buckets that ranks send each other at the same time, as a step has several under way
_TOGETHER = 2
#: seconds in which products are counted
_COUNTED = 1.5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("network")
    for name in ("batch", "steps", "bucket_bytes"):
        parser.add_argument(name, type=int)
    options = parser.parse_args()
    here = world()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[here.rank % len(cores)]})
    config.set_num_threads(1)
    found: dict[str, Any] = {"network": measured_network(here, options.bucket_bytes)}
    training = Training(here, options.network, options.batch, options.bucket_bytes)
    turns = [(mode, training.steps(mode, options.steps)) for _ in range(_TURNS) for mode in MODES]
    for mode in MODES:
        taken = [step for name, steps in turns if name == mode for step in steps]
        seconds, waits = (statistics.median(values) for values in zip(*taken, strict=True))
        found[mode] = here.comm.gather((seconds, waits))
    with Profiler(training.model, steps=5, skip=0) as profiler:
        training.steps("none", 5)
    found["profiles"] = here.comm.gather(profiler.profile.to_dict())
    if here.rank == 0:
        print(json.dumps(found), flush=True)


class Training:
    """A model on this rank, trained on random images."""

    def __init__(self, here: World, network: str, batch: int, bucket_bytes: int) -> None:
        self.here = here
        self.batch = batch
        rng = np.random.default_rng(0)
        self.x = rng.standard_normal((batch * here.size, 32, 32, 3), np.float32)
        self.y = rng.integers(0, 10, batch * here.size)
        self.model = compiled(Case(network, 32, batch))
        self.model._pydt_training.memory.keeps_gradients = True
        distribution.set_distribution(distribution.DataParallel(bucket_size=bucket_bytes / 2**20))
        worker = replica.current()
        assert isinstance(worker, Worker)
        self.worker = worker
        self.model.train_on_batch(self.x, self.y)
        store = self.model._pydt_training.memory.store
        assert store is not None
        self.reduction = worker._steps[store].reduction
        self.waits: list[float] = []

    def communicated(self, what: str, start: int, stop: int) -> None:
        """Of an observer of communication."""

    def waited(self, what: str, start: int, stop: int) -> None:
        self.waits[-1] += 1e-9 * (stop - start)

    def steps(self, mode: str, count: int) -> list[tuple[float, float]]:
        """Of each of so many steps its seconds and those of them that were spent waiting; one before is not counted."""
        alone = mode == "none"
        replica.set_current(None if alone else self.worker)
        self.worker.observer = self
        self.reduction.overlap = mode == "overlapped"
        own = slice(0, self.batch if alone else None)
        times, self.waits = [], [0.0]
        wait(self.here.comm.Ibarrier())
        for _ in range(count + 1):
            times.append(time.perf_counter())
            self.model.train_on_batch(self.x[own], self.y[own])
            self.waits.append(0.0)
        times.append(time.perf_counter())
        request = self.here.comm.Ibarrier()
        while alone and not request.Test():  # nobody has a core for itself before all are done
            self.model.train_on_batch(self.x[own], self.y[own])
        wait(request)
        return [(b - a, waited) for (a, b), waited in zip(itertools.pairwise(times), self.waits, strict=False)][1:]


def wait(request: Any) -> None:
    """Leaves the core to others."""
    while not request.Test():
        time.sleep(2e-4)


# --- the network --------------------------------------------------------------------------------------------------
def measured_network(here: World, bucket_bytes: int) -> dict[str, float]:
    """alpha, beta, gamma and delta of simulation.Network, the means of all ranks."""
    alpha = statistics.median(exchanged(here, _SMALL) for _ in range(50))
    beta = statistics.median(sent_together(here, bucket_bytes) for _ in range(5)) / (_TOGETHER * bucket_bytes)
    gradients = np.zeros(bucket_bytes // 4, np.float32)
    count = int(here.comm.bcast(max(_COUNTED / (beta * gradients.nbytes), 2)))
    alone, _ = products_beside(here, 1, here.comm.Ibarrier, _COUNTED)
    rate, seconds = products_beside(here, count, lambda: here.comm.Iallreduce(here.mpi.IN_PLACE, gradients))
    sent = 2 * (here.size - 1) / here.size * gradients.nbytes * count
    delta = max(1 - rate / alone, 0) * seconds / sent
    own = {"alpha": alpha, "beta": beta, "gamma": added(here, gradients), "delta": delta}
    return {name: statistics.mean(here.comm.allgather(value)) for name, value in own.items()}


def exchanged(here: World, nbytes: int) -> float:
    """Seconds in which pairs of ranks send each other a message at the same time."""
    other, buffers = here.rank ^ 1, np.zeros((2, nbytes), np.uint8)
    wait(here.comm.Ibarrier())
    start = time.perf_counter()
    here.comm.Sendrecv(buffers[0], other, 0, buffers[1], other, 0)
    return time.perf_counter() - start


def sent_together(here: World, nbytes: int) -> float:
    """Seconds in which pairs of ranks send each other some messages, and leave their cores to others meanwhile.

    A rank that polls all the time uses up a quota of its core's time, and then waits until it has another one.
    """
    other, buffers = here.rank ^ 1, np.zeros((2, _TOGETHER, nbytes), np.uint8)
    wait(here.comm.Ibarrier())
    start = time.perf_counter()
    requests = [here.comm.Irecv(buffer, other) for buffer in buffers[0]]
    requests += [here.comm.Isend(buffer, other) for buffer in buffers[1]]
    for request in requests:
        wait(request)
    return time.perf_counter() - start


def added(here: World, gradients: np.ndarray) -> float:
    """Seconds in which MPI adds a byte to another."""
    total = gradients.copy()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        here.mpi.SUM.Reduce_local(gradients, total)
        times.append(time.perf_counter() - start)
    return min(times) / gradients.nbytes


def products_beside(here: World, count: int, begin: Callable[[], Any], least: float = 0.0) -> tuple[float, float]:
    """(matrix products a second, seconds) of a core that computes while so many operations follow each other."""
    a = np.ones((192, 192), np.float32)
    wait(here.comm.Ibarrier())
    start, products, request = time.perf_counter(), 0, begin()
    while count or time.perf_counter() < start + least:
        for _ in range(4):
            a @ a
        products += 4
        if count and request.Test():
            count -= 1
            request = begin() if count else None
    seconds = time.perf_counter() - start
    wait(here.comm.Ibarrier())
    return products / seconds, seconds


if __name__ == "__main__":
    main()
