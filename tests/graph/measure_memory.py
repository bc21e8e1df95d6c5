"""Trains one network of networks.py in this process and prints "predicted measured" bytes.

usage: python -m tests.graph.measure_memory NETWORK SIZE WIDTH BATCH [SHARE FOLDER]

Measured is what the process's peak resident memory grows by between the moment before the model is built and the end of
the second training step.  A small model of the same kind runs first, so that libraries, threads and micro-kernels are
there already; the images lie in memory already too.  With SHARE the step may take that share of what it would, and
offloads to FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import pydtconv as keras
from pydtconv.graph import Disk, disk_speed
from tests.graph import networks


def status(field: str) -> int:
    """A figure of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def train(name: str, size: int, width: int, x: np.ndarray, y: np.ndarray, share: float = 0, folder: str = "") -> Any:
    model = getattr(networks, name)(size, width)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=name != "plain")
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), loss)
    if not share:
        for _ in range(2):
            model.train_on_batch(x, y)
        return model.plan(len(x))
    # whether tensors move depends on the disk: of a busy one the planner makes less use
    disk_speed.measure = lambda folder: Disk(50e9, 50e9, 1.0, 0.0)
    limit = int(share * model.plan(len(x)).peak_bytes)
    model.fit(x, y, batch_size=len(x), epochs=2, verbose=0, memory_limit=limit, offload=folder)
    plan = model._pydt_steps.plans[0]
    assert plan.offloaded is not None
    assert plan.offloaded.moved
    return plan


def main() -> None:
    name, (size, width, batch) = sys.argv[1], map(int, sys.argv[2:5])
    offload: tuple[Any, ...] = (float(sys.argv[5]), sys.argv[6]) if len(sys.argv) > 5 else ()
    rng = np.random.default_rng(0)
    train(name, 16, 4, rng.random((2, 16, 16, 3), np.float32), np.zeros(2, np.int32))
    x, y = rng.random((batch, size, size, 3), np.float32), rng.integers(0, 10, batch)
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    plan = train(name, size, width, x, y, *offload)
    print(plan.peak_bytes, status("VmHWM") - before)


if __name__ == "__main__":
    main()
