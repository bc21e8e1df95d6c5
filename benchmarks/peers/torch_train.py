"""Training of one described network with PyTorch: `python -m benchmarks.peers.torch_train` and

    FILE SIZE BATCH MODE STEPS DTYPE CLOCK

FILE holds what description.py says of a network.  MODE: nchw, channels_last or compile (channels_last, compiled).
DTYPE: float32, or mixed_bfloat16, which is autocast with bfloat16.
CLOCK: the function of `time` that steps are measured by.
Trains on random images, of classes or of values, by SGD with momentum and prints a JSON line: seconds of the first step
and of each one after it, and the peak resident memory of this process in MiB.  The number of threads is that of
OMP_NUM_THREADS.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch

from benchmarks import memory
from benchmarks.peers.torch_networks import Network

MODES = ("channels_last", "nchw", "compile")


def train(path: str, size: int, batch: int, mode: str, steps: int, dtype: str, clock: str) -> dict[str, object]:
    description = json.loads(Path(path).read_text())
    torch.manual_seed(0)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    model: torch.nn.Module = Network(description).train()
    *spatial, channels = description["layers"][0]["config"]["batch_shape"][1:]
    outputs = model(torch.randn(2, channels, *spatial))  # gives the lazy modules their shapes
    x = torch.randn(batch, channels, *spatial)
    classifies = description["layers"][-1]["config"]["activation"] == "softmax"
    y = torch.randn(batch, outputs.shape[1])
    if classifies:
        y = torch.randint(0, outputs.shape[1], (batch, *outputs.shape[2:]))
    del outputs
    if mode != "nchw" and len(spatial) > 1:
        layout = torch.channels_last if len(spatial) == 2 else torch.channels_last_3d
        model = model.to(memory_format=layout)
        x = x.contiguous(memory_format=layout)
    if mode == "compile":
        model = torch.compile(model)  # type: ignore[assignment]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    loss = torch.nn.CrossEntropyLoss() if classifies else torch.nn.MSELoss()
    seconds, now = [], getattr(time, clock)
    for _ in range(steps + 1):
        start = now()
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "mixed_bfloat16"):
            value = loss(model(x), y)
        value.backward()
        optimizer.step()
        seconds.append(now() - start)
    peer = f"PyTorch {torch.__version__}"
    return {"peer": peer, "first": seconds[0], "seconds": seconds[1:], "peak MiB": memory.peak()}


if __name__ == "__main__":
    file, size, batch, mode, steps, dtype, clock = sys.argv[1:]
    print(json.dumps(train(file, int(size), int(batch), mode, int(steps), dtype, clock)))
