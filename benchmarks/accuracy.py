"""Accuracy after some epochs, by precision: `python -m benchmarks.accuracy`.

A network of the zoo is trained on CIFAR-10 from the same weights, with the same batches, once in each precision and for
each seed: SGD with momentum, whose learning rate falls to 0 in a line.  float32 is the one that the others are compared
with.  Seeds differ by a point or so themselves; the mean difference over seeds is what counts.  The images are those of
`datasets.cifar10` (PYDTCONV_DATA); --samples takes the first ones of the training set.  With --keep, a run goes on
where another one ended; each row tells where it comes from.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import pydtconv as keras
from benchmarks import report
from benchmarks.processes import Kept
from pydtconv import applications, config

PRECISIONS = ("float32", "mixed_bfloat16")
Row = dict[str, object]
Images = tuple[np.ndarray, np.ndarray]


def cifar10(samples: int) -> tuple[Images, Images]:
    """Normalized images (n, 32, 32, 3) float32 and classes (n,): the first of the training set, and the test set."""
    (x, y), (x_test, y_test) = keras.datasets.cifar10.load_data()
    x, y = x[:samples].astype(np.float32), y[:samples]
    mean, deviation = x.mean((0, 1, 2)), x.std((0, 1, 2))
    return ((x - mean) / deviation, y.ravel()), ((x_test.astype(np.float32) - mean) / deviation, y_test.ravel())


def train(
    network: str, precision: str, seed: int, epochs: int, batch: int, rate: float, data: tuple[Images, Images]
) -> Row:
    """One run: its loss, accuracy on the test set in percent, and seconds of training."""
    (x, y), test = data
    keras.utils.set_random_seed(seed)
    config.set_dtype_policy(precision)
    model = applications.build(network, input_shape=x.shape[1:], classes=10)
    falling = keras.optimizers.schedules.PolynomialDecay(rate, epochs * -(-len(x) // batch), 0.0)
    optimizer = keras.optimizers.SGD(falling, momentum=0.9, nesterov=True)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    start = time.perf_counter()
    history = model.fit(x, y, batch_size=batch, epochs=epochs, verbose=0)
    seconds = time.perf_counter() - start
    loss, accuracy = model.evaluate(*test, batch_size=500, verbose=0)
    return {
        "network": network, "precision": precision, "seed": seed, "samples": len(x), "epochs": epochs,
        "loss": history.history["loss"][-1], "test loss": loss, "accuracy %": 100 * accuracy, "seconds": seconds,
    }  # fmt: skip


def summary(rows: Sequence[Row]) -> list[Row]:
    """A row a precision: mean accuracy, and the mean and the largest difference from float32 of the same seed."""
    by_run = {(row["precision"], row["seed"]): float(str(row["accuracy %"])) for row in rows}
    found = []
    for precision in dict.fromkeys(row["precision"] for row in rows):
        mine = {seed: accuracy for (which, seed), accuracy in by_run.items() if which == precision}
        apart = [accuracy - by_run["float32", seed] for seed, accuracy in mine.items() if ("float32", seed) in by_run]
        found.append(
            {
                "precision": precision,
                "seeds": len(mine),
                "accuracy %": float(np.mean(list(mine.values()))),
                "from float32": float(np.mean(apart)) if apart else None,
                "furthest": max(apart, key=abs) if apart else None,
            }
        )
    return found


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--network", default="resnet20", help="of the zoo (default: resnet20)")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--seeds", type=int, default=3, help="runs of each precision (default: 3)")
    parser.add_argument("--epochs", type=int, default=3, help="(default: 3)")
    parser.add_argument("--samples", type=int, default=50000, help="images of the training set (default: all)")
    parser.add_argument("--batch", type=int, default=128, help="images of a step (default: 128)")
    parser.add_argument("--rate", type=float, default=0.1, help="learning rate at the start (default: 0.1)")
    parser.add_argument("--keep", type=Path, help="a JSON file of runs that are done")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    options = parse(words)
    data = cifar10(options.samples)
    kept = Kept(options.keep)
    rows: list[Row] = []
    for seed in range(options.seeds):
        for precision in options.precisions:
            case = (options.network, precision, seed, options.epochs, options.batch, options.rate)
            row, origin = kept.get(f"{case} {options.samples}", functools.partial(train, *case, data))
            print(*(f"{key}: {report.cell(value)}" for key, value in row.items()), sep=", ", flush=True)
            rows.append(row | origin)
            report.write_csv("accuracy", rows)
    config.set_dtype_policy("float32")
    report.print_table("means over seeds", summary(rows))


if __name__ == "__main__":
    main()
