"""Larger batches in the same memory, over a network: `python -m benchmarks.split_ranks` (Split-CNN, section 6.4).

T. Jin, S. Hong, "Split-CNN: Splitting Window-based Operations in Convolutional Neural Networks for Memory System
Optimization", ASPLOS 2019.  Ranks of data-parallel training have the memory that the plan of --batch images takes.  The
plain network trains that many; the split one, whose tensors are offloaded to --folder, the largest multiple that fits.
So an epoch has fewer updates, and gradients are reduced less often.  Ranks are real or predicted as in
`benchmarks.weak_scaling`, whose columns these are, and:

- batch, MiB: images of a rank's step, and the peak that its plan predicts.
- updates, epoch s: of --images images by all ranks.  speed-up: over the plain network on as many ranks.
- accuracy %: on CIFAR-10, of the whole network, trained for --epochs epochs of --samples images with batches of as many
  real ranks: the gradients of so many shares are accumulated to an update.  The rate grows with the batch from that of
  the plain one within the warm-up (linear scaling).  refreshed %: with statistics of batch normalization found anew.

Needs root; see benchmarks/hosts.  With --keep, a run goes on where another one ended.
"""

from __future__ import annotations

import argparse
import functools
import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pydtconv as keras
from benchmarks import memory_wall, report, weak_scaling
from benchmarks.accuracy import Images, cifar10
from benchmarks.large_batch import optimizer
from benchmarks.networks import Case
from benchmarks.processes import Kept
from pydtconv import applications

MIB = 1 << 20
WAYS = ("plain", "split")
Row = dict[str, Any]


def trainings(model: str, options: argparse.Namespace) -> dict[str, weak_scaling.Training]:
    """What a rank trains either way, within the memory of the plain one."""
    plain = weak_scaling.Training(model, options.batch)
    limit = peak(plain)

    def split(batch: int) -> weak_scaling.Training:
        return weak_scaling.Training(model, batch, options.split, limit, options.folder)

    def fits(batch: int) -> bool:
        try:
            return peak(split(batch)) <= limit
        except MemoryError:
            return False

    batch = memory_wall.largest([options.batch * factor for factor in sorted(options.factors)], fits)
    if not batch:
        raise SystemExit(
            f"benchmarks.split_ranks: {model}: split, no multiple of {options.batch} images is in {limit} B"
        )
    return {"plain": plain, "split": split(batch)}


def peak(training: weak_scaling.Training) -> int:
    """Bytes of the plan of a step whose gradients are all there at its end, as ranks reduce them.

    Raises MemoryError where none is within the limit.
    """
    model = memory_wall.model_of(Case(training.model, 32, training.batch), training.split)
    model._pydt_training.memory.keeps_gradients = True
    limits = {"memory_limit": training.memory_limit, "offload": training.offload} if training.memory_limit else {}
    return int(model.plan(training.batch, **limits).peak_bytes)


def accuracy(
    training: weak_scaling.Training, seed: int, data: tuple[Images, Images], options: argparse.Namespace
) -> Row:
    """Test accuracy in percent of the whole network, as it is and refreshed, and seconds of training."""
    (x, y), test = data
    ranks = max(options.ranks)
    keras.utils.set_random_seed(seed)
    model = applications.build(training.model, input_shape=x.shape[1:], classes=10)
    steps = -(-len(x) // training.batch)
    factor = training.batch / options.batch
    warmup = round(options.warmup * steps)
    chosen = optimizer("scaled", options.rate, factor, options.epochs * steps, warmup, ranks)
    model.compile(chosen, "sparse_categorical_crossentropy", metrics=["accuracy"], split=training.split)
    start = time.perf_counter()
    model.fit(x, y, batch_size=training.batch, epochs=options.epochs, verbose=0)
    found: Row = {"seconds": time.perf_counter() - start}
    found["accuracy %"] = 100 * model.evaluate(*test, batch_size=500, verbose=0)[1]
    if training.split:
        callback = keras.callbacks.PreciseBatchNorm(x, training.batch)
        callback.set_model(model)
        callback.refresh()
        found["refreshed %"] = 100 * model.evaluate(*test, batch_size=500, verbose=0)[1]
    return found


def compare(rows: Sequence[Row], images: int) -> None:
    """Fills in the updates and the seconds of an epoch of so many images, and the speed-up over "plain"."""
    plain = {}
    for row in rows:
        row["updates"] = math.ceil(images / (row["ranks"] * row["batch"]))
        row["epoch s"] = images / row["images/s"]
        place = (row["model"], row["link"], row["ranks"])
        plain.setdefault(place, row["epoch s"])
        row["speed-up"] = plain[place] / row["epoch s"]


def measure(model: str, options: argparse.Namespace, kept: Kept) -> list[Row]:
    """Rows of both ways, all links and ranks of a network; "plain" first."""
    rows: list[Row] = []
    head = f"{model} {options.batch} {options.split}"
    ways, _ = kept.get(f"{head} {options.factors}", lambda: trainings(model, options))
    for way, training in zip(WAYS, (weak_scaling.Training(*ways[way]) for way in WAYS), strict=True):
        nbytes, _ = kept.get(f"{head} {training} peak", functools.partial(peak, training))
        for link in options.links:
            found, origin = {}, {}
            for ranks in sorted(set(options.ranks)):
                run = functools.partial(weak_scaling.measured, training, ranks, link, options)
                name = f"{training} {ranks} {link} {options.ranks} {options.steps} {options.quota}"
                found[ranks], origin = kept.get(name, run)
            key = {"model": model, "link": link, "way": way, "batch": training.batch, "MiB": nbytes / MIB}
            rows += [key | row | origin for row in weak_scaling.table(found, options.simulated, training.batch)]
    return rows


def trained(model: str, data: tuple[Images, Images], options: argparse.Namespace, kept: Kept) -> list[Row]:
    """A row for each way and seed: what it learns."""
    head = f"{model} {options.batch} {options.split}"
    ways, _ = kept.get(f"{head} {options.factors}", lambda: trainings(model, options))
    settings = (max(options.ranks), options.epochs, options.warmup, options.samples, options.rate, options.batch)
    rows: list[Row] = []
    for seed in range(options.seeds):
        for way in WAYS:
            training = weak_scaling.Training(*ways[way])
            run = functools.partial(accuracy, training, seed, data, options)
            found, origin = kept.get(f"{training} {seed} {settings}", run)
            key = {"model": model, "way": way, "batch of all ranks": training.batch * max(options.ranks), "seed": seed}
            rows.append(
                {**key, "samples": options.samples, "epochs": options.epochs, "refreshed %": None, **found} | origin
            )
            print(*(f"{name}: {report.cell(value)}" for name, value in rows[-1].items()), sep=", ", flush=True)
    return rows


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.split_ranks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--models", nargs="+", default=["smallvgg16", "resnet20"], help="of the zoo")
    weak_scaling.add_arguments(parser)
    parser.add_argument("--split", default="0.5:2x2", help="of the split way (default: 0.5:2x2)")
    parser.add_argument("--factors", nargs="+", type=int, default=[1, 2, 3, 4, 6, 8], help="multiples of the batch")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="on the disk to offload to")
    parser.add_argument("--images", type=int, default=50000, help="of an epoch (default: 50000)")
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each way for accuracy; 0: none (default: 1)")
    parser.add_argument("--epochs", type=int, default=10, help="of these (default: 10)")
    parser.add_argument("--warmup", type=float, default=1.0, help="epochs of them (default: 1)")
    parser.add_argument("--samples", type=int, default=50000, help="their images (default: all)")
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate of the plain batch (default: 0.05)")
    parser.add_argument("--keep", type=Path, help="a JSON file of what is measured already")
    options = weak_scaling.checked(parser, parser.parse_args(words))
    if min(options.factors) < 1 or min(options.images, options.samples) < 1 or options.seeds < 0:
        parser.error("--factors, --images, --samples, --seeds: expected 1 or more, seeds 0 or more")
    return options


def main(words: Sequence[str] | None = None) -> None:
    options = parse(words)
    kept = Kept(options.keep)
    weak_scaling.check_hosts("split_ranks")
    rows: list[Row] = []
    for model in options.models:
        rows += measure(model, options, kept)
        compare(rows, options.images)
        print(report.write_csv("split_ranks", rows), flush=True)
    report.print_table("an epoch within the same memory of a rank, plain and split", rows)
    if options.seeds:
        data = cifar10(options.samples)
        learned = [row for model in options.models for row in trained(model, data, options, kept)]
        report.print_table("accuracy with the batches of both ways", learned)
        print(report.write_csv("split_ranks_accuracy", learned))


if __name__ == "__main__":
    main()
