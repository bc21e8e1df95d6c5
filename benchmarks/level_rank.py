"""One rank of `python -m benchmarks.levels`: seconds of a sum of gradients for each way, as JSON from rank 0."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from pydtconv import config
from pydtconv.distribution.gradients.all_reduce import AllReduce, MpiAllReduce
from pydtconv.distribution.gradients.shared_memory import rows_of_hosts
from pydtconv.distribution.gradients.two_level_all_reduce import TwoLevelAllReduce
from pydtconv.distribution.gradients.two_levels import two_levels
from pydtconv.distribution.mpi.channels import channels
from pydtconv.distribution.mpi.launch import world

_WHAT = "a sum of gradients"
_BUCKET = 1 << 20


def main() -> None:
    elements, turns = int(float(sys.argv[1]) * (1 << 18)), int(sys.argv[2])
    here = world()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[here.rank % len(cores)]})
    config.set_num_threads(1)
    every = channels(here)
    hosts, levels = every.hosts, two_levels(every)
    memory = rows_of_hosts(hosts, every.small, elements, "float32")
    row = memory.rows[hosts.number]
    ways: dict[str, Callable[[], AllReduce]] = {"messages": partial(MpiAllReduce, every.large, every.gathered)}
    ways |= {f"by {n} of a host": partial(TwoLevelAllReduce, memory, hosts, n) for n in levels.seconds}
    parts = [slice(start, min(start + _BUCKET, elements)) for start in range(0, elements, _BUCKET)]
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(1 + turns):
        for way, made in ways.items():
            row[:], backend = 1, made()  # which goes on with the counters of the memory
            every.small.allreduce(np.zeros(1), _WHAT)
            start = time.perf_counter()
            backend.begin(in_blocks=False)
            for request in [backend.start(row, part) for part in parts]:
                every.small.wait(request, _WHAT)
            seconds = every.small.allgather([time.perf_counter() - start], _WHAT)
            times[way].append(float(seconds.max()))
            if not (row == here.size).all():
                raise RuntimeError(f"{way}: expected {here.size} in all places, got {row.min()} to {row.max()}")
    if here.rank == 0:
        found = {way: statistics.median(seconds[1:]) for way, seconds in times.items()}
        print(json.dumps({"seconds": found, "link": levels.link * elements / (1 << 18), "chosen": levels.lanes}))


if __name__ == "__main__":
    main()
