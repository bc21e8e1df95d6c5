"""Custom loops beside `fit`: `python -m benchmarks.loops`.

The same network is trained on the same images in three ways: by `fit`, by `fit` of a model whose `train_step` is
written by hand with a tape, and by a loop over batches whose step is a `function` with a tape.  A step of the last two
is traced once and runs from a plan after that.  Counted are milliseconds of a step, of whole epochs; the three take
turns, and the least of each counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pydtconv as keras
from benchmarks import report
from pydtconv import applications

#: name: shape of an image, images of a step
NETWORKS = {"mnist_convnet": ((28, 28, 1), 32), "resnet20": ((32, 32, 3), 64), "smallvgg16": ((32, 32, 3), 64)}
CLASSES = 10


def network(name: str) -> Any:
    """A new network of the zoo, not compiled."""
    shape, _ = NETWORKS[name]
    return applications.build(name, shape, CLASSES)


class ByHand(keras.Model):
    """A model whose step is Keras's, written by hand."""

    def __init__(self, layers: Any) -> None:
        super().__init__()
        self.layers_of_zoo = layers

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        return self.layers_of_zoo(inputs, training=training)

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with keras.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def optimizer() -> Any:
    return keras.optimizers.SGD(0.01, momentum=0.9)


def compiled(model: Any) -> Any:
    model.compile(optimizer(), "sparse_categorical_crossentropy")
    return model


def epoch_of_a_loop(model: Any, batches: list[tuple[np.ndarray, np.ndarray]]) -> Callable[[], None]:
    rule, loss_of = optimizer(), keras.losses.SparseCategoricalCrossentropy()

    @keras.function
    def step(x: Any, y: Any) -> Any:
        with keras.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        rule.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    def epoch() -> None:
        for x, y in batches:
            loss = step(x, y)
        float(loss)

    return epoch


def row(name: str, steps: int, turns: int) -> dict[str, object]:
    shape, batch = NETWORKS[name]
    generator = np.random.default_rng(0)
    x = generator.random((steps * batch, *shape), np.float32)
    y = generator.integers(CLASSES, size=steps * batch)
    batches = [(x[i : i + batch], y[i : i + batch]) for i in range(0, len(x), batch)]

    def fit(model: Any) -> Callable[[], None]:
        return lambda: model.fit(x, y, batch, epochs=1, shuffle=False, verbose=0)

    ways = {
        "fit": fit(compiled(network(name))),
        "train_step": fit(compiled(ByHand(network(name)))),
        "loop": epoch_of_a_loop(network(name), batches),
    }
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(turns + 1):  # the first one traces and plans
        for way, epoch in ways.items():
            started = time.perf_counter()
            epoch()
            found[way].append((time.perf_counter() - started) / steps * 1e3)
    least = {way: min(times[1:]) for way, times in found.items()}
    figures: dict[str, object] = {f"{way}, ms": value for way, value in least.items()}
    ratios = {f"{way} / fit": least[way] / least["fit"] for way in ("train_step", "loop")}
    return {"network": name, "batch": batch, **figures, **ratios}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.loops", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--steps", type=int, default=20, help="of an epoch (default: 20)")
    parser.add_argument("--turns", type=int, default=5, help="epochs of each way (default: 5)")
    options = parser.parse_args()
    rows = [row(name, options.steps, options.turns) for name in options.networks]
    report.print_table("a training step by fit, a train_step of one's own, and a loop", rows)
    print(report.write_csv("loops", rows))


if __name__ == "__main__":
    main()
