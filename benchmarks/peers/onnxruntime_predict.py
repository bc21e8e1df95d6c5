"""Predictions of one network with onnxruntime: `python -m benchmarks.peers.onnxruntime_predict` and

    FILE BATCH MODE CALLS SECONDS

FILE is the network as ONNX; MODE is not looked at.  Prints a JSON line: seconds of so many calls on random images, or
fewer where they take longer.  The number of threads is that of OMP_NUM_THREADS.
"""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import onnxruntime

from benchmarks.timing import calls_of


def predict(path: str, batch: int, calls: int, seconds: float) -> dict[str, object]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    x = np.random.default_rng(0).standard_normal((batch, *given.shape[1:]), np.float32)
    times = calls_of({"seconds": lambda: session.run(None, {given.name: x})}, calls, seconds)
    return {"peer": f"onnxruntime {onnxruntime.__version__}", **times}


if __name__ == "__main__":
    file, batch, _, calls, seconds = sys.argv[1:]
    print(json.dumps(predict(file, int(batch), int(calls), float(seconds))))
