"""Accuracy after each epoch beside peers, from the same weights: `python -m benchmarks.parity --peer torch`.

Networks of the zoo are trained on CIFAR-10 by each side from the same weights, on the same batches in the same order,
by SGD with momentum, whose learning rate falls to 0 in a line.  Only dropout is drawn by each side itself.  Seeds
change the weights and the order.  The images are those of `datasets.cifar10` (PYDTCONV_DATA); --samples takes the first
ones of the training set.  With --keep, a run goes on where another one ended; each row tells where it comes from.  A
CSV file and a picture of the accuracies, the mean and the range of the seeds, go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pydtconv as keras
from benchmarks import report
from benchmarks.accuracy import Images, cifar10
from benchmarks.peers.description import describe
from benchmarks.peers.epochs import Run, train
from benchmarks.peers.table import PEERS, add_peer_arguments, installed
from benchmarks.peers.torch_weights import in_torch_order
from benchmarks.processes import Kept, in_own_process
from pydtconv import applications

OURS = "pydtconv"
Row = dict[str, object]


def write_data(folder: Path, data: tuple[Images, Images]) -> None:
    for (x, y), suffix in zip(data, ("", "_test"), strict=True):
        np.save(folder / f"x{suffix}.npy", x)
        np.save(folder / f"y{suffix}.npy", y.astype(np.int64))


def measure(network: str, seed: int, side: str, data: Path, options: argparse.Namespace, python: str) -> dict[str, Any]:
    """What the process of a side prints: losses and accuracies of the epochs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keras.utils.set_random_seed(seed)
        model = applications.build(network, input_shape=np.load(data / "x.npy", mmap_mode="r").shape[1:], classes=10)
        (folder / "model.json").write_text(model.to_json())
        (folder / "network.json").write_text(json.dumps(describe(model)))
        model.save_weights(folder / "weights.weights.h5")
        arrays = {f"{key}/{i}": v for key, values in in_torch_order(model).items() for i, v in enumerate(values)}
        np.savez(folder / "torch.npz", **arrays)  # type: ignore[arg-type]
        run = Run(str(data), name, options.epochs, options.batch, options.rate, seed)
        if side == OURS:
            return in_own_process("benchmarks.parity", ["--one", *run], options.threads)
        return PEERS[side].run("epochs", run, options.threads, python)


def summary(rows: Sequence[Row]) -> list[Row]:
    """A row a network and side: the accuracy after the last epoch, and how far it is from ours of the same seed."""
    last = {(row["network"], row["side"], row["seed"]): float(str(row["accuracy %"])) for row in rows}
    found: list[Row] = []
    for network, side in dict.fromkeys((row["network"], row["side"]) for row in rows):
        mine = {seed: value for (*place, seed), value in last.items() if place == [network, side]}
        apart = [value - last[network, OURS, seed] for seed, value in mine.items()]
        means = {"accuracy %": float(np.mean(list(mine.values()))), "from ours": float(np.mean(apart))}
        found.append({"network": network, "side": side, "seeds": len(mine)} | means | {"furthest": max(apart, key=abs)})
    return found


def plot(rows: Sequence[Row], name: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    networks = list(dict.fromkeys(str(row["network"]) for row in rows))
    figure, axes = plt.subplots(1, len(networks), figsize=(5 * len(networks), 3.6), squeeze=False)
    for network, ax in zip(networks, axes[0], strict=True):
        for side in dict.fromkeys(row["side"] for row in rows):
            by_epoch: dict[int, list[float]] = {}
            for row in rows:
                if (row["network"], row["side"]) == (network, side):
                    by_epoch.setdefault(int(str(row["epoch"])), []).append(float(str(row["accuracy %"])))
            epochs, values = list(by_epoch), list(by_epoch.values())
            (line,) = ax.plot(epochs, [np.mean(each) for each in values], label=str(side), marker="o")
            ax.fill_between(epochs, [min(each) for each in values], [max(each) for each in values],
                            alpha=0.2, color=line.get_color())  # fmt: skip
        ax.set(title=network, xlabel="epoch", ylabel="test accuracy, %")
        ax.legend()
    origin = report.shared_origin(rows, "see the file")
    figure.text(0.01, 0.01, "; ".join(origin.values()), fontsize=report.ORIGIN_SIZE, wrap=True)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(report.RESULTS / f"{name}.png", dpi=120)
    plt.close(figure)


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parity", description=__doc__)
    add_peer_arguments(parser)
    parser.add_argument("--networks", nargs="+", default=["resnet20", "smallvgg16"], help="of the zoo")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each side (default: 3)")
    parser.add_argument("--epochs", type=int, default=6, help="(default: 6)")
    parser.add_argument("--samples", type=int, default=10000, help="images of the training set (default: 10000)")
    parser.add_argument("--batch", type=int, default=64, help="images of a step (default: 64)")
    parser.add_argument("--rate", type=float, default=0.02, help="learning rate at the start (default: 0.02)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--keep", type=Path, help="a JSON file of runs that are done")
    parser.add_argument("--name", default="parity", help="of the files in benchmarks/results/ (default: parity)")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> None:
    options = parse(words)
    pythons = {OURS: sys.executable} | installed(options.peer, options.peer_python)
    kept, rows = Kept(options.keep), list[Row]()
    settings = (options.epochs, options.samples, options.batch, options.rate)
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder), cifar10(options.samples))
        for seed in range(options.seeds):
            for network in options.networks:
                for side, python in pythons.items():
                    run = functools.partial(measure, network, seed, side, Path(folder), options, python)
                    found, origin = kept.get(f"{network} {seed} {side} {settings}", run)
                    label = OURS if side == OURS else PEERS[side].label
                    common = {"network": network, "side": label, "seed": seed, "samples": options.samples}
                    for epoch, (loss, accuracy) in enumerate(zip(found["loss"], found["accuracy %"], strict=True), 1):
                        rows.append({**common, "epoch": epoch, "loss": loss, "accuracy %": accuracy, **origin})
                    print(*(f"{key}: {report.cell(value)}" for key, value in rows[-1].items()), sep=", ", flush=True)
                    report.write_csv(options.name, rows)
    plot(rows, options.name)
    report.print_table("after the last epoch, over seeds", summary(rows))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        asked = Run.parse(sys.argv[2:])
        network = keras.models.model_from_json((Path(asked.folder) / "model.json").read_text())
        print(json.dumps(train(keras, network, asked)))
    else:
        main()
