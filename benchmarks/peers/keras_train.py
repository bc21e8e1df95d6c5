"""Training of one network with Keras: `KERAS_BACKEND=jax python -m benchmarks.peers.keras_train FILE BATCH STEPS`.

FILE holds a model as `to_json` writes it, which Keras reads, too.  Trains on random images by SGD with momentum, by
`train_on_batch` of a compiled model, and prints a JSON line: seconds of each step after the first two, and the peak
resident memory of this process in MiB.  The number of threads is that of the backend.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import keras
import numpy as np

from benchmarks import memory

WARM = 2  # the first steps compile


def train(path: str, batch: int, steps: int) -> dict[str, object]:
    model = keras.models.model_from_json(Path(path).read_text())
    model.compile(keras.optimizers.SGD(0.001, momentum=0.9), "sparse_categorical_crossentropy")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batch, *model.input_shape[1:]), np.float32)
    y = rng.integers(0, model.output_shape[-1], batch)
    seconds = []
    for _ in range(steps + WARM):
        start = time.perf_counter()
        model.train_on_batch(x, y)
        seconds.append(time.perf_counter() - start)
    peer = f"Keras {keras.__version__} on {keras.backend.backend()}"
    return {"peer": peer, "seconds": seconds[WARM:], "peak MiB": memory.peak()}


if __name__ == "__main__":
    file, batch, steps = sys.argv[1:]
    print(json.dumps(train(file, int(batch), int(steps))))
