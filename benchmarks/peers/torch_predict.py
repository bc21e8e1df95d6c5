"""Predictions of one described network with PyTorch: `python -m benchmarks.peers.torch_predict` and

    FILE BATCH MODE CALLS SECONDS

FILE holds what description.py says of a network.  MODE: channels_last; freeze, which is that traced, frozen and
optimized for inference; or compile, which is that compiled with its weights as constants.  Prints a JSON line: seconds
of so many calls on random images, without gradients, or fewer where they take longer.  The number of threads is that of
OMP_NUM_THREADS.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from benchmarks.peers.torch_networks import Network
from benchmarks.timing import calls_of


def predict(path: str, batch: int, mode: str, calls: int, seconds: float) -> dict[str, object]:
    description = json.loads(Path(path).read_text())
    torch.manual_seed(0)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    *spatial, channels = description["layers"][0]["config"]["batch_shape"][1:]
    x = torch.randn(batch, channels, *spatial)
    model: Any = Network(description).eval()
    with torch.no_grad():
        model(x)  # gives the lazy modules their shapes
        if len(spatial) > 1:
            layout = torch.channels_last if len(spatial) == 2 else torch.channels_last_3d
            model, x = model.to(memory_format=layout), x.contiguous(memory_format=layout)
        if mode == "freeze":
            warnings.simplefilter("ignore", DeprecationWarning)
            model = torch.jit.optimize_for_inference(torch.jit.trace(model, x))
        if mode == "compile":
            torch._inductor.config.freezing = True
            model = torch.compile(model)
        times = calls_of({"seconds": lambda: model(x)}, calls, seconds)
    return {"peer": f"PyTorch {torch.__version__}", **times}


if __name__ == "__main__":
    file, batch, mode, calls, seconds = sys.argv[1:]
    print(json.dumps(predict(file, int(batch), mode, int(calls), float(seconds))))
