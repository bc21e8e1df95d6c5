"""Training of one described network with PyTorch: python -m benchmarks.peers.torch_train FILE SIZE BATCH MODE STEPS.

FILE holds what description.py says of a network.  MODE: nchw, channels_last or compile (channels_last, compiled).
Trains on random images by SGD with momentum and prints a JSON line: seconds of each step after the first, and the peak
resident memory of this process in MiB.  The number of threads is that of OMP_NUM_THREADS.
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


def train(path: str, size: int, batch: int, mode: str, steps: int) -> dict[str, object]:
    description = json.loads(Path(path).read_text())
    torch.manual_seed(0)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    model: torch.nn.Module = Network(description).train()
    model(torch.randn(2, 3, size, size))  # gives the lazy modules their shapes
    x = torch.randn(batch, 3, size, size)
    y = torch.randint(0, description["layers"][-1]["config"]["units"], (batch,))
    if mode != "nchw":
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    if mode == "compile":
        model = torch.compile(model)  # type: ignore[assignment]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    loss = torch.nn.CrossEntropyLoss()
    seconds = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    return {"peer": f"PyTorch {torch.__version__}", "seconds": seconds[1:], "peak MiB": memory.peak()}


if __name__ == "__main__":
    file, size, batch, mode, steps = sys.argv[1:]
    print(json.dumps(train(file, int(size), int(batch), mode, int(steps))))
