"""Predictions beside PyTorch and onnxruntime: `python -m benchmarks.predict --peer torch --peer onnxruntime`.

All sides compute the same network on random images, in fresh processes that take turns, on the same number of threads.
Counted are calls: images/s and ms are of the median one, and the 99th percentile says how late the slow ones come.
pydtconv runs by `predict_on_batch`, and in turns with it by `model(x)`.  PyTorch runs in the fastest of its modes
(channels_last, freeze, compile), found by a trial of each; onnxruntime runs the file that `export` writes.  A CSV file
and a picture go to benchmarks/results/.  `--networks all` takes the whole zoo.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.networks import Case, batch_of, compiled
from benchmarks.peers.description import describe
from benchmarks.peers.table import PEERS, add_peer_arguments, installed
from benchmarks.processes import in_own_process
from benchmarks.timing import calls_of

#: networks, and rows and columns of their images
CASES = (
    ("resnet34", 32), ("resnet34", 224), ("densenet121", 224), ("vgg16", 224), ("mobilenetv2", 224),
    ("resnet50", 224), ("efficientnetb0", 224),
)  # fmt: skip
BATCHES = (1, 4, 16, 64)
MODES = ("channels_last", "freeze", "compile")
#: extents of what a network takes, by its axes, where none are asked for
EXTENTS = {1: 224, 2: 224, 3: 64}
TRIAL = 5
Times = dict[str, list[float]]


def ours(case: Case, calls: int, seconds: float) -> Times:
    """Seconds of calls of both kinds in this process."""
    model = compiled(case)
    x, _ = batch_of(case, model)
    return calls_of(
        {"predict_on_batch": lambda: model.predict_on_batch(x), "model(x)": lambda: model(x)}, calls, seconds
    )


def slow_call(seconds: list[float]) -> float:
    """The 99th percentile."""
    return sorted(seconds)[math.ceil(0.99 * len(seconds)) - 1]


class Sides:
    """All sides of a network at one size.  pythons: the peers that are measured, and their interpreters."""

    def __init__(self, network: str, size: int, folder: Path, options: argparse.Namespace) -> None:
        self.network, self.size, self.options = network, size, options
        self.pythons: Mapping[str, str] = options.pythons
        model = compiled(Case(network, size, 1))
        self.files = {"torch": folder / "described.json", "onnxruntime": folder / "network.onnx"}
        if "torch" in self.pythons:
            self.files["torch"].write_text(json.dumps(describe(model)))
        if "onnxruntime" in self.pythons:
            model.export(str(self.files["onnxruntime"]), format="onnx", verbose=False)

    def run_ours(self, batch: int) -> Times:
        words = ["--one", self.network, self.size, batch, self.options.calls, self.options.seconds]
        return in_own_process("benchmarks.predict", words, self.options.threads)

    def run_peer(self, name: str, batch: int, mode: str, calls: int | None = None) -> list[float]:
        words = [self.files[name], batch, mode, calls or self.options.calls, self.options.seconds]
        found = PEERS[name].run("predict", words, self.options.threads, self.pythons[name])
        return list(found["seconds"])

    def fastest_mode(self, batch: int) -> str:
        """The mode of PyTorch whose best of a few calls is the fastest."""
        modes = self.options.modes if "torch" in self.pythons else []
        if len(modes) < 2:
            return modes[0] if modes else ""
        best = {mode: min(self.run_peer("torch", batch, mode, TRIAL)) for mode in modes}
        return min(best, key=best.__getitem__)

    def row(self, batch: int) -> dict[str, object]:
        mode = self.fastest_mode(batch)
        mine: Times = {"predict_on_batch": [], "model(x)": []}
        theirs: Times = {name: [] for name in self.pythons}
        for _ in range(self.options.rounds):
            for way, seconds in self.run_ours(batch).items():
                mine[way] += seconds
            for name, seconds in theirs.items():
                seconds += self.run_peer(name, batch, mode)
        median = {way: statistics.median(seconds) for way, seconds in (mine | theirs).items()}
        row: dict[str, object] = {"network": self.network, "images": self.size, "batch": batch}
        best, call = median["predict_on_batch"], median["model(x)"]
        row |= {"images/s": batch / best, "ms": 1e3 * best, "99th ms": 1e3 * slow_call(mine["predict_on_batch"])}
        row |= {
            "calls": len(mine["predict_on_batch"]),
            "model(x) images/s": batch / call,
            "model(x) share": best / call,
        }
        for name, seconds in theirs.items():
            label = PEERS[name].label
            row |= {f"{label} images/s": batch / median[name], f"{label} ratio": median[name] / best}
            row |= {f"{label} ms": 1e3 * median[name], f"{label} 99th ms": 1e3 * slow_call(seconds)}
        return row | ({"PyTorch mode": mode} if mode else {})


def chosen(networks: list[str] | None, sizes: list[int] | None) -> list[tuple[str, int]]:
    """The networks that are measured, with the sizes of their images."""
    if networks is None:
        return [case for case in CASES if sizes is None or case[1] in sizes]
    from pydtconv import applications

    names = applications.names() if networks == ["all"] else networks
    return [(name, size) for name in names for size in sizes or [EXTENTS[applications.axes(name)]]]


def summary(rows: list[dict[str, object]], names: Mapping[str, str]) -> dict[str, float]:
    """Geometric means and the least of the ratios, of all rows."""
    found = {}
    for column in ("model(x) share", *(f"{PEERS[name].label} ratio" for name in names)):
        values = [float(str(row[column])) for row in rows]
        found |= {f"{column}, geometric mean": statistics.geometric_mean(values), f"{column}, least": min(values)}
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.predict", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_peer_arguments(parser, ("torch", "onnxruntime"))
    parser.add_argument("--networks", nargs="+", help="names of the zoo, or all (default: six networks)")
    parser.add_argument("--sizes", nargs="+", type=int, help="rows and columns of an image")
    parser.add_argument("--batches", nargs="+", type=int, default=list(BATCHES), help="images of a call")
    parser.add_argument("--calls", type=int, default=100, help="of a process, that are timed (default: 100)")
    parser.add_argument("--seconds", type=float, default=8, help="after which a process ends earlier (default: 8)")
    parser.add_argument("--rounds", type=int, default=1, help="processes of each side (default: 1)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES), help="of PyTorch that are tried")
    parser.add_argument("--name", default="predict", help="of the files in benchmarks/results/")
    return parser.parse_args()


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        network, size, batch, calls, seconds = sys.argv[2:]
        print(json.dumps(ours(Case(network, int(size), int(batch)), int(calls), float(seconds))))
        return
    options = parse()
    options.pythons = installed(options.peer, options.peer_python)
    rows: list[dict[str, Any]] = []
    for network, size in chosen(options.networks, options.sizes):
        with tempfile.TemporaryDirectory() as folder:
            sides = Sides(network, size, Path(folder), options)
            for batch in options.batches:
                rows.append(sides.row(batch))
                print(", ".join(f"{key} {report.cell(value)}" for key, value in rows[-1].items()), flush=True)
    report.print_table("predictions", rows)
    print(report.write_csv(options.name, rows))
    for key, value in summary(rows, options.pythons).items():
        print(f"{key}: {value:.2f}")
    if options.pythons:
        labels = [f"{row['network']} {row['images']}, {row['batch']}" for row in rows]
        ratios = {PEERS[name].label: [row[f"{PEERS[name].label} ratio"] for row in rows] for name in options.pythons}
        title = "predictions: images/s relative to others, by network, size and batch"
        print(report.plot_bars(options.name, title, labels, ratios, "pydtconv / the other", 1.0, "the other"))


if __name__ == "__main__":
    main()
