"""Trains one network of networks.py in this process and prints "predicted measured" bytes.

usage: python -m tests.graph.measure_memory NETWORK SIZE WIDTH BATCH

Measured is what the process's peak resident memory grows by between the moment before the model is built and the end of
the second training step.  A small model of the same kind runs first, so that libraries, threads and micro-kernels are
there already; the images lie in memory already too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import pydtconv as keras
from tests.graph.networks import NETWORKS


def status(field: str) -> int:
    """A figure of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def train(name: str, size: int, width: int, x: np.ndarray, y: np.ndarray) -> Any:
    model = NETWORKS[name](size, width)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=name != "plain")
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), loss)
    for _ in range(2):
        model.train_on_batch(x, y)
    return model


def main() -> None:
    name, (size, width, batch) = sys.argv[1], map(int, sys.argv[2:])
    rng = np.random.default_rng(0)
    train(name, 16, 4, rng.random((2, 16, 16, 3), np.float32), np.zeros(2, np.int32))
    x, y = rng.random((batch, size, size, 3), np.float32), rng.integers(0, 10, batch)
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    model = train(name, size, width, x, y)
    print(model.plan(batch).peak_bytes, status("VmHWM") - before)


if __name__ == "__main__":
    main()
