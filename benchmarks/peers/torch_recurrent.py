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

#: as in benchmarks/recurrent.py: side, channels (0: as many as filters), sizes of filters
VIDEOS = {"ConvLSTM2D": (32, 0, (3, 3)), "NextFrame": (64, 1, (5, 3, 1))}


class ConvLSTM(nn.Module):
    def __init__(self, channels: int, filters: int, size: int) -> None:
        super().__init__()
        self.filters = filters
        self.of_inputs = nn.Conv2d(channels, 4 * filters, size, padding=size // 2)
        self.of_state = nn.Conv2d(filters, 4 * filters, size, padding=size // 2, bias=False)

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
        if cell in VIDEOS:
            _, channels, sizes = VIDEOS[cell]
            widths = [channels or units, *[units] * layers]
            every = (ConvLSTM(widths[i], units, sizes[i]) for i in range(layers))
            self.layers: nn.Module = nn.Sequential(*every)
        else:
            options = {"batch_first": True, "bidirectional": directions == 2}
            self.layers = getattr(nn, cell)(units, units, layers, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.cell in VIDEOS:
            return self.layers(x)[:, -1]
        y, _ = self.layers(x)
        return torch.cat([y[:, -1, : self.units], y[:, 0, self.units :]], 1)


def train(
    cell: str, units: int, batch: int, sequence: int, layers: int, directions: int, steps: int
) -> dict[str, object]:
    torch.manual_seed(0)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    model = Last(cell, units, layers, directions)
    side, channels, _ = VIDEOS.get(cell, (0, 0, ()))
    places = [side] * 2 if side else []
    x = torch.randn(batch, sequence, channels or units, *places)
    y = torch.randn(batch, units, *places) if side else torch.randn(batch, directions * units)
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
