"""Training for whole epochs with PyTorch: `python -m benchmarks.peers.torch_epochs` and

    DATA FOLDER EPOCHS BATCH RATE SEED

See epochs.py.  Prints a JSON line: the loss and the accuracy on the test images, in percent, of each epoch.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.peers.epochs import Run
from benchmarks.peers.torch_networks import Network


def images(x: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(x)).permute(0, 3, 1, 2)  # channels_last


def train(run: Run) -> dict[str, Any]:
    torch.manual_seed(run.seed)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    x, y, x_test, y_test = map(run.array, ("x", "y", "x_test", "y_test"))
    model = Network(json.loads((Path(run.folder) / "network.json").read_text()))
    model.eval()(images(x[:2]))  # gives the lazy modules their shapes
    with np.load(Path(run.folder) / "torch.npz") as file:
        weights: dict[str, list[np.ndarray]] = {}
        for key in file:  # in the order in which they were written
            weights.setdefault(key.rpartition("/")[0], []).append(file[key])
    model.set_weights(weights)
    model = model.to(memory_format=torch.channels_last)
    # the learning rate stands before the gradient, as Keras has it, and not before the sum with the momentum
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    loss_of, rates = torch.nn.CrossEntropyLoss(), iter(run.rates())
    losses, accuracies = [], []
    for epoch in range(run.epochs):
        order, total = run.order(epoch), 0.0
        model.train()
        for start in range(0, len(order), run.batch):
            chosen = order[start : start + run.batch]
            optimizer.zero_grad()
            loss = loss_of(model(images(x[chosen])), torch.from_numpy(y[chosen]))
            (loss * next(rates)).backward()
            optimizer.step()
            total += loss.item() * len(chosen)
        losses.append(total / len(order))
        accuracies.append(accuracy(model.eval(), x_test, y_test))
    return {"loss": losses, "accuracy %": accuracies}


@torch.no_grad()
def accuracy(model: torch.nn.Module, x: np.ndarray, y: np.ndarray) -> float:
    right = sum(
        int((model(images(x[i : i + 500])).argmax(1).numpy() == y[i : i + 500]).sum()) for i in range(0, len(x), 500)
    )
    return 100 * right / len(x)


if __name__ == "__main__":
    print(json.dumps(train(Run.parse(sys.argv[1:]))))
