"""Training of recurrent layers with PyTorch: `python -m benchmarks.peers.torch_recurrent` and

    CELL UNITS BATCH SEQUENCE LAYERS DIRECTIONS STEPS

the numbers of a case of benchmarks/recurrent.py.  PyTorch has no ConvLSTM2D: its convolutions of the inputs are one of
all steps, as ours are, and those of the state one a step.  Prints a JSON line: seconds of the first step and of each
step after the first two, and the peak resident memory of this process in MiB.  The number of threads is that of
OMP_NUM_THREADS.
"""

from __future__ import annotations

import json
import os
import sys
import time

import torch
from torch import nn

from benchmarks import memory

SIDE = 32


class ConvLSTM(nn.Module):
    def __init__(self, filters: int) -> None:
        super().__init__()
        self.filters = filters
        self.of_inputs = nn.Conv2d(filters, 4 * filters, 3, padding=1)
        self.of_state = nn.Conv2d(filters, 4 * filters, 3, padding=1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, steps = x.shape[:2]
        z = self.of_inputs(x.flatten(0, 1)).unflatten(0, (n, steps))
        h = c = x.new_zeros(n, self.filters, *x.shape[3:])
        states = []
        for t in range(steps):
            i, forget, k, o = (z[:, t] + self.of_state(h)).chunk(4, 1)
            c = torch.sigmoid(forget) * c + torch.sigmoid(i) * torch.tanh(k)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return torch.stack(states, 1)


class Last(nn.Module):
    """The output of the last step that each direction makes."""

    def __init__(self, cell: str, units: int, layers: int, directions: int) -> None:
        super().__init__()
        self.cell, self.units = cell, units
        if cell == "ConvLSTM2D":
            self.layers: nn.Module = nn.Sequential(*(ConvLSTM(units) for _ in range(layers)))
        else:
            options = {"batch_first": True, "bidirectional": directions == 2}
            self.layers = getattr(nn, cell)(units, units, layers, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.cell == "ConvLSTM2D":
            return self.layers(x)[:, -1]
        y, _ = self.layers(x)
        return torch.cat([y[:, -1, : self.units], y[:, 0, self.units :]], 1)


def train(
    cell: str, units: int, batch: int, sequence: int, layers: int, directions: int, steps: int
) -> dict[str, object]:
    torch.manual_seed(0)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    model = Last(cell, units, layers, directions)
    images = cell == "ConvLSTM2D"
    x = torch.randn(batch, sequence, units, *[SIDE] * 2) if images else torch.randn(batch, sequence, units)
    y = torch.randn(batch, units, *[SIDE] * 2) if images else torch.randn(batch, directions * units)
    optimizer, loss = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9), nn.MSELoss()
    seconds = []
    for _ in range(steps + 2):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    return {
        "peer": f"PyTorch {torch.__version__}",
        "first": seconds[0],
        "seconds": seconds[2:],
        "peak MiB": memory.peak(),
    }


if __name__ == "__main__":
    cell, *numbers = sys.argv[1:]
    print(json.dumps(train(cell, *map(int, numbers))))
