"""What all sides of benchmarks.parity share: the files of a run, the order of its images, its learning rate."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Run(NamedTuple):
    """data: a folder with x, y, x_test, y_test.  folder: one with model.json, network.json, and the weights."""

    data: str
    folder: str
    epochs: int
    batch: int
    rate: float
    seed: int

    @classmethod
    def parse(cls, words: list[str]) -> Run:
        data, folder, epochs, batch, rate, seed = words
        return cls(data, folder, int(epochs), int(batch), float(rate), int(seed))

    def array(self, name: str) -> Any:
        """Images (n, height, width, channels) float32, or classes (n,) int64."""
        return np.load(Path(self.data) / f"{name}.npy", mmap_mode="r")

    def order(self, epoch: int) -> np.ndarray:
        """The order of the images of an epoch, of which each step takes the next ones."""
        return np.random.default_rng([self.seed, epoch]).permutation(len(self.array("y")))

    def rates(self) -> list[float]:
        """The learning rate of each step: it falls to 0 in a line."""
        steps = self.epochs * -(-len(self.array("y")) // self.batch)
        return [self.rate * (1 - step / steps) for step in range(steps)]


def train(keras: Any, model: Any, run: Run) -> dict[str, Any]:
    """By Keras, or by us, who have its API: loss and test accuracy after each epoch."""
    model.load_weights(Path(run.folder) / "weights.weights.h5")
    steps = len(run.rates())
    falling = keras.optimizers.schedules.PolynomialDecay(run.rate, steps, 0.0)
    model.compile(keras.optimizers.SGD(falling, momentum=0.9), "sparse_categorical_crossentropy", metrics=["accuracy"])
    x, y, x_test, y_test = map(run.array, ("x", "y", "x_test", "y_test"))
    losses, accuracies = [], []
    for epoch in range(run.epochs):
        order = run.order(epoch)
        history = model.fit(x[order], y[order], batch_size=run.batch, epochs=1, shuffle=False, verbose=0).history
        losses.append(history["loss"][0])
        accuracies.append(100 * model.evaluate(x_test, y_test, batch_size=500, verbose=0)[1])
    return {"loss": losses, "accuracy %": accuracies}
