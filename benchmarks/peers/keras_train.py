"""Training of one network with Keras: `KERAS_BACKEND=jax python -m benchmarks.peers.keras_train` and

    FILE BATCH STEPS CLOCK

FILE holds a model as `to_json` writes it, which Keras reads, too.  CLOCK: the function of `time` that steps are
measured by.  Trains on random images, of classes or of values, by SGD with momentum, by `train_on_batch` of a model
that is compiled as by default, and prints a JSON line: seconds of the first step and of each step after the first two,
and the peak resident memory of this process in MiB.  It has as many cores as OMP_NUM_THREADS says: backends take all
that they see.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

if hasattr(os, "sched_setaffinity"):  # before a backend starts its threads
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(os.environ["OMP_NUM_THREADS"])])

import keras
import numpy as np

from benchmarks import memory

WARM = 2  # the first steps compile


def train(path: str, batch: int, steps: int, clock: str) -> dict[str, object]:
    model = keras.models.model_from_json(Path(path).read_text())
    classifies = model.layers[-1].get_config().get("activation") == "softmax"
    loss = "sparse_categorical_crossentropy" if classifies else "mean_squared_error"
    model.compile(keras.optimizers.SGD(0.001, momentum=0.9), loss)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, *model.input_shape[1:]), np.float32)
    y = rng.standard_normal((batch, *model.output_shape[1:]), np.float32)
    if classifies:
        y = rng.integers(0, model.output_shape[-1], (batch, *model.output_shape[1:-1]))
    seconds, now = [], getattr(time, clock)
    for _ in range(steps + WARM):
        start = now()
        model.train_on_batch(x, y)
        seconds.append(now() - start)
    peer = f"Keras {keras.__version__} on {keras.backend.backend()}"
    return {"peer": peer, "first": seconds[0], "seconds": seconds[WARM:], "peak MiB": memory.peak()}


if __name__ == "__main__":
    file, batch, steps, clock = sys.argv[1:]
    print(json.dumps(train(file, int(batch), int(steps), clock)))
