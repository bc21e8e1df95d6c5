"""One rank of `python -m benchmarks.weak_scaling` or `split_ranks`: seconds of a step, as JSON from rank 0.

One rank is profiled, too; of two ranks the network between them is measured, and how much reductions differ.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import pydtconv as keras
from benchmarks.hosts.quotas import place
from benchmarks.link_rank import measured_network, wait
from benchmarks.memory_wall import model_of
from benchmarks.networks import Case
from pydtconv import config, distribution
from pydtconv.distribution.mpi.launch import World, world
from pydtconv.profiling import Profiler

#: all-reduces that are timed
_REDUCTIONS = 30


def main() -> None:
    options = argparse.Namespace(**json.loads(sys.argv[1]))
    limited = keras.memory_limit(options.memory_limit, options.offload) if options.memory_limit else nullcontext()
    with limited:
        measure(options)


def measure(options: argparse.Namespace) -> None:
    here = world()
    config.set_num_threads(1)
    place(Path(options.groups[here.rank]), here.rank, os.getpid())
    case = Case(options.model, 32, options.batch)
    found: dict[str, Any] = {}
    if here.size == 2:
        found["network"] = measured_network(here, options.bucket_bytes)
        found["reductions"] = reductions(here, options.bucket_bytes)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((case.batch * here.size, *case.input_shape), np.float32)
    y = rng.integers(0, case.classes, len(x))
    model = model_of(case, options.split)
    model._pydt_training.memory.keeps_gradients = True
    if here.size > 1:
        distribution.set_distribution(distribution.DataParallel(bucket_size=options.bucket_bytes / 2**20))
    for _ in range(2):
        model.train_on_batch(x, y)
    wait(here.comm.Ibarrier())
    start = time.perf_counter()
    for _ in range(options.steps):
        model.train_on_batch(x, y)
    seconds = (time.perf_counter() - start) / options.steps
    found["seconds"] = max(here.comm.allgather(seconds))
    if here.size == 1:
        with Profiler(model, steps=options.steps, skip=0) as profiler:
            for _ in range(options.steps):
                model.train_on_batch(x, y)
        found["profile"] = profiler.profile.to_dict()
    if here.rank == 0:
        print(json.dumps(found), flush=True)


def reductions(here: World, nbytes: int) -> list[float]:
    """Seconds of all-reduces of so many bytes, each from when the last rank has begun it."""
    gradients = np.zeros(nbytes // 4, np.float32)
    times = []
    for _ in range(_REDUCTIONS):
        wait(here.comm.Ibarrier())
        start = time.perf_counter()
        wait(here.comm.Iallreduce(here.mpi.IN_PLACE, gradients))
        times.append(min(here.comm.allgather(time.perf_counter() - start)))
    return times


if __name__ == "__main__":
    main()
