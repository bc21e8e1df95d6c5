"""Accuracy of split networks: `python -m benchmarks.split`.

Trains a network of the zoo on CIFAR-10 with the same epochs and seeds for each depth, number of patches, and with even
or drawn borders, and evaluates it unsplit: as it is, and refreshed, with statistics of batch normalization that
`PreciseBatchNorm` has found anew.  It is evaluated as it is after each epoch, too, for curves of convergence.  A CSV
file goes to benchmarks/results/ after each training, pictures at the end.
The trainings of `--first`, against the whole network, come first with all seeds; the others seed by seed.  With
`--keep`, a run goes on where another one ended; `--minutes` ends it.

--quick trains on the handwritten digits of 8x8 pixels that come with the package, ten epochs of batches of 32, into
split_quick.csv: minutes instead of hours.  It tells that networks learn in patches, not what CIFAR-10 loses.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.processes import Kept

SPLITS = {1: "1x1", 2: "2x1", 4: "2x2", 9: "3x3"}

#: depth, number of patches, share by which borders are drawn, statistics of batch normalization, last epochs unsplit
Case = tuple[float, int, float, str, int]
COLUMNS = ("depth", "patches", "stochastic", "statistics", "last epochs whole")
WHOLE: Case = (0.0, 1, 0.0, "patch", 0)
#: defaults of --quick
QUICK = {"dataset": "digits", "epochs": 10, "batch": 32, "name": "split_quick"}


def text_of(case: Case) -> str | None:
    """The split as `compile` takes it."""
    depth, patches, stochastic, statistics_of, _ = case
    exactness = ":image" if statistics_of == "image" else ""
    return None if patches == 1 else f"{depth}:{SPLITS[patches]}:{stochastic}{exactness}"


def normalized(x: Any, x_test: Any) -> tuple[Any, Any]:
    """Images with mean 0 and deviation 1 in each channel of x, so that the zeros a patch is padded with are grey."""
    mean, deviation = x.mean((0, 1, 2)), x.std((0, 1, 2))
    whitened = [((part - mean) / deviation).astype("float32") for part in (x, x_test)]
    return whitened[0], whitened[1]


def accuracy(options: argparse.Namespace, case: Case, seed: int) -> dict[str, Any]:
    """Test accuracy of the whole network after each epoch, as it is, and after the last one, refreshed (None where it
    was not split); the loss of training in each epoch, and seconds of training."""
    import pydtconv as keras
    from pydtconv import applications, datasets

    keras.utils.set_random_seed(seed)
    (x, y), (x_test, y_test) = getattr(datasets, options.dataset).load_data()
    x, x_test = (part if part.ndim == 4 else part[..., None] for part in (x, x_test))
    x, x_test = normalized(x[: options.samples], x_test[: options.tests])
    y, y_test = y[: options.samples].reshape(-1), y_test[: options.tests].reshape(-1)
    model = applications.build(options.network, input_shape=x.shape[1:], classes=10)
    steps = -(-len(x) // options.batch) * options.epochs
    rate = keras.optimizers.schedules.CosineDecay(options.learning_rate, steps)
    optimizer = keras.optimizers.SGD(rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
    loss = "sparse_categorical_crossentropy"
    change = options.epochs - case[4]
    found: dict[str, Any] = {"accuracy %": [], "loss": [], "seconds": 0.0, "refreshed %": None}

    def tested() -> float:
        return 100 * float(model.evaluate(x_test, y_test, batch_size=100, verbose=0)[1])

    for epoch in range(options.epochs):
        start = time.perf_counter()
        if epoch in (0, change):
            model.compile(optimizer, loss, metrics=["accuracy"], split=text_of(case) if epoch < change else None)
        fitted = model.fit(x, y, batch_size=options.batch, initial_epoch=epoch, epochs=epoch + 1, verbose=0)
        found["seconds"] += time.perf_counter() - start
        found["loss"].append(float(fitted.history["loss"][-1]))
        found["accuracy %"].append(tested())
    if case != WHOLE:
        callback = keras.callbacks.PreciseBatchNorm(x, options.batch)
        callback.set_model(model)
        callback.refresh()
        found["refreshed %"] = tested()
    return found


def order(options: argparse.Namespace) -> Iterator[tuple[Case, int]]:
    """All trainings, the most important first."""
    choices = (options.depths, options.patches, options.stochastic, options.statistics, options.last_whole)
    others = list(itertools.product(*choices))
    first = [WHOLE, *(case for case in others if text_of(case) in options.first and not case[4])]
    yield from ((case, seed) for seed in options.seeds for case in first)
    yield from ((case, seed) for seed in options.seeds for case in others if case not in first)


def rows_of(options: argparse.Namespace, found: dict[tuple[Case, int], Any]) -> list[dict[str, Any]]:
    """A row for each case, over the seeds that have been trained; points are lost seed by seed."""
    rows = []
    for case in sorted({case for case, _ in found}):
        seeds = [seed for seed in options.seeds if (case, seed) in found]
        curves = [found[case, seed]["accuracy %"] for seed in seeds]
        values = [curve[-1] for curve in curves]
        again = [found[case, seed]["refreshed %"] for seed in seeds]
        refreshed = values if case == WHOLE else again
        lost = [
            [found[WHOLE, seed]["accuracy %"][-1] - value for value in (last, fresh)]
            for seed, last, fresh in zip(seeds, values, refreshed, strict=True)
            if (WHOLE, seed) in found
        ]
        row: dict[str, Any] = {"network": options.network, "data": options.dataset, "images": options.samples}
        row |= {"epochs": options.epochs} | dict(zip(COLUMNS, case, strict=True))
        row |= {"seeds": len(seeds), "accuracy %": statistics.mean(values)}
        row["deviation"] = statistics.stdev(values) if len(values) > 1 else None
        row["points lost"] = statistics.mean(first for first, _ in lost) if lost else None
        row["refreshed %"] = statistics.mean(refreshed)
        row["points lost, refreshed"] = statistics.mean(second for _, second in lost) if lost else None
        row["training loss"] = statistics.mean(found[case, seed]["loss"][-1] for seed in seeds)
        row["seconds"] = statistics.mean(found[case, seed]["seconds"] for seed in seeds)
        row["accuracy by epochs %"] = " ".join(f"{statistics.mean(values):.2f}" for values in zip(*curves, strict=True))
        rows.append(row)
    return rows


def label(row: dict[str, Any]) -> str:
    if row["patches"] == 1:
        return "whole"
    what = " drawn" if row["stochastic"] else ""
    what += " image" if row["statistics"] == "image" else ""
    what += " last whole" if row["last epochs whole"] else ""
    return f"{row['depth']:.0%}, {SPLITS[row['patches']]}{what}"


def pictures(name: str, rows: list[dict[str, Any]]) -> None:
    """The last accuracies as bars, and those after each epoch as curves (the paper's figure of convergence)."""
    values = {name: [row[name] for row in rows] for name in ("accuracy %", "refreshed %")}
    title = "Test accuracy of networks trained in patches, evaluated whole"
    report.plot_bars(name, title, [label(row) for row in rows], values, "%", rows=rows)
    curves = {label(row): [float(value) for value in str(row["accuracy by epochs %"]).split()] for row in rows}
    title = "Test accuracy, evaluated whole, after each epoch"
    report.plot_curves(f"{name}_curves", title, curves, "epoch", "%", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="digits instead of CIFAR-10")
    parser.add_argument("--network", default="resnet20")
    parser.add_argument("--dataset", default="cifar10")
    parser.add_argument("--samples", type=int, help="only the first images of training")
    parser.add_argument("--tests", type=int, help="only the first images of the test")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--depths", type=float, nargs="+", default=[0.25, 0.5, 0.75])
    parser.add_argument("--patches", type=int, nargs="+", default=[4, 9], choices=SPLITS)
    parser.add_argument("--stochastic", type=float, nargs="+", default=[0.0, 0.2])
    choices, text = ["patch", "image"], "of batch normalization: of each patch, or of the whole image"
    parser.add_argument("--statistics", nargs="+", default=["patch"], choices=choices, help=text)
    text = "epochs at the end in which the network is not split"
    parser.add_argument("--last-whole", type=int, nargs="+", default=[0], help=text)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--first", nargs="*", default=["0.5:2x2:0.2"], help="splits that are trained first, all seeds")
    parser.add_argument("--keep", type=Path, help="a JSON file of trainings that are done")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no training begins later")
    parser.add_argument("--name", default="split", help="of the files in benchmarks/results/")
    if parser.parse_known_args()[0].quick:
        parser.set_defaults(**QUICK)
    options = parser.parse_args()
    kept = Kept(options.keep)
    settings = [options.network, options.dataset, options.samples, options.tests, options.epochs, options.batch]
    start = time.monotonic()
    found: dict[tuple[Case, int], Any] = {}
    rows: list[dict[str, Any]] = []
    for case, seed in order(options):
        name = f"{[*settings, options.learning_rate]} {text_of(case)} last {case[4]} seed {seed}"
        if name not in kept.results and time.monotonic() - start > 60 * options.minutes:
            break
        found[case, seed], _ = kept.get(name, functools.partial(accuracy, options, case, seed))
        print(text_of(case), seed, found[case, seed], flush=True)
        rows = rows_of(options, found)
        path = report.write_csv(options.name, rows)
    report.print_table("Accuracy of networks trained in patches, evaluated whole", rows)
    print(f"\n{path}")
    pictures(options.name, rows)


if __name__ == "__main__":
    main()
