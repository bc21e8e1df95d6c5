"""Accuracy after some epochs, by size of the batch: `python -m benchmarks.large_batch`.

The experiment of Goyal et al. (arXiv 1706.02677, 2017) in small.  A network of the zoo is trained on CIFAR-10 from the
same weights with batches of 64, 512 and 4096 images, of 8 ranks: gradients of 8 steps, each of a rank's share, are
accumulated to an update, and batch normalization has the statistics of a share, as on ranks that do not synchronize
them.  Ways: "fixed", SGD with momentum at the rate of the smallest batch; "scaled", at a rate that grows as the batch
does (linear scaling), from that of the smallest one within the warm-up; "lars", LARS at a rate that grows as the square
root of the batch, with the same warm-up.  All rates fall to 0 in a line.  With --keep, a run goes on where another one
ended; each row tells where it comes from.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pydtconv as keras
from benchmarks import report
from benchmarks.accuracy import Images, Row, cifar10
from benchmarks.processes import Kept
from pydtconv import applications
from pydtconv.optimizers import SGD, Lars, schedules

WAYS = ("fixed", "scaled", "lars")
RANKS = 8
_DECAY = 5e-4


def optimizer(way: str, rate: float, factor: float, steps: int, warmup: int, ranks: int = RANKS) -> Any:
    """rate: at the smallest batch; factor: how many times larger the batch is; steps: of all epochs, and of warm-up.

    ranks: whose gradients are accumulated to an update.
    """
    falling = schedules.PolynomialDecay(rate, steps, 0.0)
    grown = {"fixed": 1.0, "scaled": factor, "lars": factor**0.5}[way]
    rule = schedules.LinearScaling(falling, grown, warmup)
    options: dict[str, Any] = {"gradient_accumulation_steps": ranks, "weight_decay": _DECAY}
    return Lars(rule, **options) if way == "lars" else SGD(rule, 0.9, nesterov=True, **options)


def train(way: str, batch: int, seed: int, options: argparse.Namespace, data: tuple[Images, Images]) -> Row:
    """One run: its loss, accuracy on the test set in percent, and seconds of training."""
    (x, y), test = data
    share, smallest = batch // RANKS, min(options.batches)
    steps = -(-len(x) // share)
    rate = options.lars_rate if way == "lars" else options.rate
    keras.utils.set_random_seed(seed)
    model = applications.build(options.network, input_shape=x.shape[1:], classes=10)
    chosen = optimizer(way, rate, batch / smallest, options.epochs * steps, round(options.warmup * steps))
    model.compile(chosen, "sparse_categorical_crossentropy", metrics=["accuracy"])
    start = time.perf_counter()
    history = model.fit(x, y, batch_size=share, epochs=options.epochs, verbose=0)
    seconds = time.perf_counter() - start
    loss, accuracy = model.evaluate(*test, batch_size=500, verbose=0)
    return {
        "network": options.network, "way": way, "batch": batch, "ranks": RANKS, "seed": seed, "samples": len(x),
        "epochs": options.epochs, "warm-up": options.warmup, "rate": rate, "loss": history.history["loss"][-1],
        "test loss": loss, "accuracy %": 100 * accuracy, "seconds": seconds,
    }  # fmt: skip


def summary(rows: Sequence[Row]) -> list[Row]:
    """A row a way: the mean accuracy over seeds for each batch."""
    found = []
    for way in dict.fromkeys(row["way"] for row in rows):
        mine = [row for row in rows if row["way"] == way]
        batches = sorted({int(str(row["batch"])) for row in mine})
        means = {
            f"batch {n}": float(np.mean([float(str(row["accuracy %"])) for row in mine if row["batch"] == n]))
            for n in batches
        }
        found.append({"way": way} | means)
    return found


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_batch", description=__doc__)
    parser.add_argument("--network", default="resnet20", help="of the zoo (default: resnet20)")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--batches", nargs="+", type=int, default=[64, 512, 4096], help="(default: 64 512 4096)")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each (default: 1)")
    parser.add_argument("--epochs", type=int, default=20, help="(default: 20)")
    parser.add_argument("--warmup", type=float, default=2.0, help="epochs (default: 2)")
    parser.add_argument("--samples", type=int, default=50000, help="images of the training set (default: all)")
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate at the smallest batch (default: 0.05)")
    parser.add_argument("--lars-rate", type=float, default=1.0, help="the same with LARS (default: 1)")
    parser.add_argument("--keep", type=Path, help="a JSON file of runs that are done")
    options = parser.parse_args(words)
    if any(batch < RANKS or batch % RANKS for batch in options.batches):
        parser.error(f"--batches: expected multiples of {RANKS}, the ranks, got {options.batches}")
    return options


def main(words: Sequence[str] | None = None) -> None:
    options = parse(words)
    data = cifar10(options.samples)
    kept = Kept(options.keep)
    settings = (options.network, options.epochs, options.warmup, options.samples, options.rate, options.lars_rate)
    rows: list[Row] = []
    for seed in range(options.seeds):
        for way in options.ways:
            for batch in options.batches:
                if way == "scaled" and batch == min(options.batches) and "fixed" in options.ways:
                    continue  # the same but for rounding
                case = (way, batch, seed)
                run = functools.partial(train, *case, options, data)
                row, origin = kept.get(f"{case} {settings} {min(options.batches)}", run)
                print(*(f"{key}: {report.cell(value)}" for key, value in row.items()), sep=", ", flush=True)
                rows.append(row | origin)
                report.write_csv("large_batch", rows)
    report.print_table("mean accuracy over seeds, %", summary(rows))


if __name__ == "__main__":
    main()
