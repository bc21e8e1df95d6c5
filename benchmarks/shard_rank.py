"""One rank of `python -m benchmarks.shards`: seconds of a step and bytes of state for each way, as JSON from rank 0."""

from __future__ import annotations

import argparse
import json
import mmap
import os
import statistics
import struct
import threading
import time
from typing import Any

import numpy as np

from benchmarks.networks import Case, compiled
from pydtconv import callbacks, config, distribution, optimizers, replica
from pydtconv.distribution.mpi.launch import world

WAYS = (None, "optimizer", "gradients")
#: between two looks at memory, and steps of an epoch in which it is looked at
_SECONDS, _WATCHED = 0.02, 5


def resident(array: np.ndarray) -> int:
    """Bytes of an array that are in memory."""
    page = mmap.PAGESIZE
    first, last = array.ctypes.data // page, -(-(array.ctypes.data + array.nbytes) // page)
    with open("/proc/self/pagemap", "rb") as file:
        file.seek(8 * first)
        flags = struct.unpack(f"{last - first}Q", file.read(8 * (last - first)))
    return page * sum(flag >> 63 for flag in flags)


class Epoch(callbacks.History):
    """Notes the seconds of a step, and what the optimizer's slots and gradients take in memory.

    watches: whether they are looked at within steps, too.
    """

    def __init__(self, watches: bool) -> None:
        super().__init__()
        self.reads_state = False
        self.watches = watches
        self.seconds = self.cpu = 0.0
        self.state = self.highest = 0
        self._ended = threading.Event()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._ended.clear()
        self._thread = threading.Thread(target=self._look)
        if self.watches:
            self._thread.start()
        world().comm.Barrier()
        self._start, self._cpu = time.perf_counter(), time.process_time()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.seconds, self.cpu = time.perf_counter() - self._start, time.process_time() - self._cpu
        self._ended.set()
        if self.watches:
            self._thread.join()
            self.state = self._bytes()

    def _look(self) -> None:
        while not self._ended.wait(_SECONDS):
            self.highest = max(self.highest, self._bytes())

    def _bytes(self) -> int:
        store = self.model._pydt_training.memory.store
        worker: Any = replica.current()
        step = worker._steps.get(store)  # none before the first step
        received = 0 if step is None else sum(array.nbytes for array in tuple(step.reduction.backend.free))
        slots = self.model.optimizer._pydt_slots.flat.values()
        return received + sum(map(resident, (*slots, store.gradients)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("network")
    for name in ("batch", "steps", "turns"):
        parser.add_argument(name, type=int)
    parser.add_argument("bucket", type=float)
    options = parser.parse_args()
    here = world()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[here.rank % len(cores)]})
    config.set_num_threads(1)
    rng = np.random.default_rng(0)
    samples = options.batch * here.size * options.steps
    x, y = rng.standard_normal((samples, 32, 32, 3), np.float32), rng.integers(0, 10, samples)
    models, ways = {}, {}
    for way in WAYS:
        models[way] = compiled(Case(options.network, 32, options.batch))
        models[way].compile(optimizers.Adam(1e-4), "sparse_categorical_crossentropy")
        ways[way] = distribution.DataParallel(bucket_size=options.bucket, shard=way)

    def epoch(way: str | None, watches: bool = False) -> Epoch:
        noted, batch = Epoch(watches), options.batch * here.size
        count = batch * (_WATCHED if watches else options.steps)
        with ways[way].scope():
            models[way].fit(x[:count], y[:count], batch, 1, 0, [noted], shuffle=False)
        return noted

    memory = {way: epoch(way, watches=True) for way in WAYS}
    turns = [{way: epoch(way) for way in WAYS} for _ in range(options.turns)]
    found = {}
    for way in WAYS:
        slowest = [max(here.comm.allgather(turn[way].seconds)) for turn in turns]
        cpu = [sum(here.comm.allgather(turn[way].cpu)) for turn in turns]
        state, highest = (max(here.comm.allgather(getattr(memory[way], name))) / 2**20 for name in ("state", "highest"))
        times = {"step": statistics.median(slowest), "cpu": statistics.median(cpu)}
        found[way or "none"] = {name: seconds / options.steps for name, seconds in times.items()}
        found[way or "none"] |= {"state": state, "highest": highest}
    if here.rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
