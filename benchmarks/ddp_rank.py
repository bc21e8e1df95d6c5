"""One rank of `python -m benchmarks.ddp`: seconds and bytes of steps of both sides, as JSON from rank 0.

Both sides train in the same processes, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.hosts import set_links
from benchmarks.link_rank import wait
from benchmarks.networks import Case, compiled
from benchmarks.peers.description import describe
from pydtconv import callbacks, config, distribution, optimizers, replica
from pydtconv.distribution.data_parallel.worker import Worker
from pydtconv.distribution.mpi.launch import World, world
from pydtconv.simulation import Network

#: batches whose gradients are accumulated for one update
BATCHES = 4


class Side(Protocol):
    """step: of all ranks.  alone: of this one, without communication.  reduce: the reductions of a step alone."""

    def step(self) -> object: ...
    def alone(self) -> object: ...
    def reduce(self) -> object: ...


class Ours:
    """Training with pydtconv."""

    def __init__(self, here: World, case: Case, half: bool) -> None:
        self.here = here
        rng = np.random.default_rng(0)
        self.x = rng.standard_normal((case.batch * here.size, *case.input_shape), np.float32)
        self.y = rng.integers(0, case.classes, case.batch * here.size)
        self.own = slice(0, case.batch)
        self.model = compiled(case)
        self.memory = self.model._pydt_training.memory
        self.memory.keeps_gradients = True
        distribution.set_distribution(distribution.DataParallel(wire="bfloat16" if half else "float32"))
        worker = replica.current()
        assert isinstance(worker, Worker)
        self.worker = worker

    def step(self) -> None:
        replica.set_current(self.worker)
        self.model.train_on_batch(self.x, self.y)

    def alone(self) -> None:
        replica.set_current(None)
        self.model.train_on_batch(self.x[self.own], self.y[self.own])

    def reduce(self) -> None:
        store = self.memory.store
        assert store is not None
        reduction = self.worker._steps[store].reduction
        reduction.begin(True)
        for variable in store.variables:
            reduction.gradient_ready(store.slice_of(variable))
        for _ in reduction.arrivals():
            pass

    def accumulated(self, case: Case) -> float:
        """MB that a rank sends in an update of a fresh model by the gradients of BATCHES batches."""
        replica.set_current(self.worker)
        model = compiled(case)
        optimizer = optimizers.SGD(0.001, momentum=0.9, gradient_accumulation_steps=BATCHES)
        model.compile(optimizer, "sparse_categorical_crossentropy")
        noted = Epoch()
        x, y = (np.concatenate([each] * BATCHES) for each in (self.x, self.y))
        model.fit(x, y, len(self.x), epochs=1, verbose=0, callbacks=[noted], shuffle=False)
        return statistics.fmean(self.here.comm.allgather(noted.megabytes))


class Epoch(callbacks.History):
    """Notes what an epoch sends, in MB."""

    def __init__(self) -> None:
        super().__init__()
        self.reads_state = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._before = sent()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.megabytes = 1e-6 * (sent() - self._before)


def sent() -> int:
    """Bytes that have left this host so far."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return sum(int(line.split()[9]) for line in lines if line.strip().startswith("eth0:"))


def timed(here: World, run: Callable[[], object], alone: bool = False) -> tuple[float, float]:
    """Seconds of a call, those of the slowest rank, and MB that a rank sends in it."""
    wait(here.comm.Ibarrier())
    start, before = time.perf_counter(), sent()
    run()
    seconds, nbytes = time.perf_counter() - start, sent() - before
    request = here.comm.Ibarrier()
    while alone and not request.Test():  # nobody has a core for itself before all are done
        run()
    wait(request)
    found = here.comm.allgather((seconds, 1e-6 * nbytes))
    return max(seconds for seconds, _ in found), statistics.fmean(megabytes for _, megabytes in found)


class Turns:
    """Seconds of calls of all sides, which take turns: at least two of each, more until `seconds` are over."""

    def __init__(self, here: World, sides: dict[str, Side], most: int, seconds: float) -> None:
        self.here, self.sides, self.most, self.seconds = here, sides, most, seconds

    def medians(self, what: str, least: int = 2) -> dict[str, dict[str, float]]:
        """Of each side, for what it does by a method of this name."""
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in self.sides}
        start = time.perf_counter()
        for turn in range(self.most):
            if turn >= least and self.here.comm.bcast(time.perf_counter() - start) > self.seconds:
                break
            for name, side in self.sides.items():
                found[name].append(timed(self.here, getattr(side, what), alone=what == "alone"))
        medians = {name: map(statistics.median, zip(*each, strict=True)) for name, each in found.items()}
        return {name: {f"{what} s": seconds, f"{what} MB": sent} for name, (seconds, sent) in medians.items()}


def main() -> None:
    options = argparse.Namespace(**json.loads(sys.argv[1]))
    here = world()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[here.rank % len(cores)]})
    config.set_num_threads(1)
    from benchmarks.peers import torch_ddp  # its threads run on this core, too

    torch_ddp.join(options.address, here.rank, here.size)
    case = Case(options.model, 32, options.batch)
    ours = Ours(here, case, options.half)
    updates = {"ours": ours.accumulated(case)}
    ours.step()
    description = describe(ours.model)

    def peer(cap: float, **more: bool) -> torch_ddp.Training:
        training = torch_ddp.Training(description, case.batch, cap, options.half, **more)
        training.step()  # finds the order of buckets
        return training

    tried = {cap: timed(here, peer(cap).step)[0] for cap in options.caps} if len(options.caps) > 1 else {}
    best = min(tried, key=tried.__getitem__) if tried else options.caps[0]
    sides: dict[str, Side] = {"ours": ours, "ddp": peer(best)}
    turns = Turns(here, sides, options.turns, options.seconds)
    for side in sides.values():
        side.alone()
    alone = turns.medians("alone")
    updates["ddp"] = timed(here, peer(best, accumulates=True).update)[1]
    for link in options.links:
        if here.rank == 0:
            set_links(options.switch, Network.parse(link))
        here.comm.Barrier()
        steps, reduces = turns.medians("step"), turns.medians("reduce", least=1)
        found = {name: alone[name] | steps[name] | reduces[name] | {"update MB": updates[name]} for name in sides}
        if here.rank == 0:
            print(
                json.dumps(found | {"link": link, "cap": best, "tried": tried, "peer": torch_ddp.VERSION}), flush=True
            )


if __name__ == "__main__":
    main()
