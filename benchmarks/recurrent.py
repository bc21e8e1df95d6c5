"""Training of recurrent layers beside its peers: `python -m benchmarks.recurrent --peer torch --peer tensorflow`.

LSTM and GRU of 128 and 512 units on random sequences of as many features, in one and two layers, in one and both
directions, and ConvLSTM2D on videos.  NextFrame is the three ConvLSTM2D of Keras's example of next-frame prediction.  A
step is forward, backward and SGD with momentum on the mean squared error of the last output.  All sides run in fresh
processes that take turns, on the same number of threads, in float32.  sequences/s is of the median step; the memory is
the peak of a whole process, code and libraries included.  The floor of a step is the time of its products alone at the
peak of the cores' multiply-adds.  CSV files go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pydtconv as keras
from benchmarks import memory, report
from benchmarks.peers.table import PEERS, add_peer_arguments, installed
from benchmarks.processes import in_own_process
from benchmarks.train import summary
from pydtconv import layers, microkernels


class Case(NamedTuple):
    """layers: one behind the other.  units: of each, and features of the input; filters where inputs are videos."""

    cell: str
    units: int
    batch: int
    steps: int
    layers: int = 1
    directions: int = 1


class Video(NamedTuple):
    """Images of side x side pixels; channels: None for as many as filters; sizes: of the filters of each layer."""

    side: int
    channels: int | None
    sizes: tuple[int, ...]


VIDEOS = {"ConvLSTM2D": Video(32, None, (3, 3)), "NextFrame": Video(64, 1, (5, 3, 1))}
CASES = [
    *(
        Case(cell, units, batch, steps)
        for cell in ("LSTM", "GRU")
        for units in (128, 512)
        for batch, steps in ((16, 500), (64, 100), (256, 50))
    ),
    *(Case(cell, units, 64, 100, 2) for cell in ("LSTM", "GRU") for units in (128, 512)),
    *(Case(cell, units, 64, 100, 1, 2) for cell in ("LSTM", "GRU") for units in (128, 512)),
    Case("ConvLSTM2D", 32, 4, 10, 2),
    Case("NextFrame", 64, 5, 19, 3),
]


def network(case: Case) -> Any:
    """The model, not compiled; its output is that of the last step."""
    video = VIDEOS.get(case.cell)
    shape = (case.units,) if video is None else (video.side, video.side, video.channels or case.units)
    x = inputs = keras.Input((case.steps, *shape))
    for i in range(case.layers):
        options: dict[str, Any] = {"return_sequences": i < case.layers - 1}
        if video is not None:
            x = layers.ConvLSTM2D(case.units, video.sizes[i], padding="same", **options)(x)
            continue
        layer = getattr(layers, case.cell)(case.units, **options)
        x = (layers.Bidirectional(layer) if case.directions == 2 else layer)(x)
    return keras.Model(inputs, x)


def gflops(case: Case) -> float:
    """Of the products of a step; each is made forwards, and twice backwards, but for the gradient of the input."""
    gates = 3 if case.cell == "GRU" else 4
    each = case.batch * case.steps * gates * case.units * case.directions
    video, total = VIDEOS.get(case.cell), 0.0
    for i in range(case.layers):
        features = case.units * (case.directions if i else 1)
        taps = 1
        if video is not None:
            taps = (video.side * video.sizes[i]) ** 2
            features = features if i else video.channels or features
        total += 2e-9 * each * taps * (features * (3 if i else 2) + case.units * 3)
    return total


def ours(case: Case, steps: int, limit: str) -> dict[str, Any]:
    """Trains in this process.  limit: of the memory of a step; "" for none."""
    model = network(case)
    model.compile(keras.optimizers.SGD(0.001, momentum=0.9), "mean_squared_error")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((case.batch, *model.input_shape[1:]), np.float32)
    y = rng.standard_normal((case.batch, *model.output_shape[1:]), np.float32)
    seconds = []
    with keras.memory_limit(limit) if limit else contextlib.nullcontext():
        for _ in range(steps + 2):
            start = time.perf_counter()
            model.train_on_batch(x, y)
            seconds.append(time.perf_counter() - start)
    return {"first": seconds[0], "seconds": seconds[2:], "peak MiB": memory.peak()}


def results_of(case: Case, options: argparse.Namespace, pythons: dict[str, str], folder: Path) -> dict[str, list[Any]]:
    """What the processes of each side print; ours is ""."""
    words = [*case, options.steps]
    described = folder / "model.json"
    described.write_text(network(case).to_json())
    found: dict[str, list[Any]] = {"": [], **{name: [] for name in pythons}}
    for _ in range(options.rounds):
        found[""].append(
            in_own_process("benchmarks.recurrent", ["--one", *words, options.memory_limit], options.threads)
        )
        for name, python in pythons.items():
            task, given = ("recurrent", words) if name == "torch" else ("train", [described, case.batch, options.steps])
            clock = [] if name == "torch" else ["perf_counter"]
            found[name].append(PEERS[name].run(task, [*given, *clock], options.threads, python))
    return found


def figures(case: Case, results: list[Any]) -> tuple[float, float]:
    """Sequences a second of the median step, and the median peak in MiB."""
    step = statistics.median(second for result in results for second in result["seconds"])
    return case.batch / step, statistics.median(result["peak MiB"] for result in results)


def row(case: Case, results: dict[str, list[Any]], peer: str, peak: float) -> dict[str, object]:
    rate, mebibytes = figures(case, results[""])
    found: dict[str, object] = {
        **case._asdict(),
        "sequences/s": rate,
        "times floor": case.batch / rate * peak / gflops(case),
    }
    if not peer:
        return found | {"MiB": mebibytes}
    (peer_rate, peer_memory), label = figures(case, results[peer]), PEERS[peer].label
    found |= {f"{label} sequences/s": peer_rate, "speed ratio": rate / peer_rate}
    return found | {"MiB": mebibytes, f"{label} MiB": peer_memory, "memory ratio": mebibytes / peer_memory}


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        cell, *numbers, steps, limit = sys.argv[2:]
        print(json.dumps(ours(Case(cell, *map(int, numbers)), int(steps), limit)))
        return
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recurrent", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_peer_arguments(parser)
    parser.add_argument("--cells", nargs="+", choices=("LSTM", "GRU", *VIDEOS), help="these alone")
    parser.add_argument("--units", nargs="+", type=int, help="cases of these alone")
    parser.add_argument("--layers", nargs="+", type=int, help="cases of so many layers alone")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each side (default: 2)")
    parser.add_argument("--steps", type=int, default=5, help="timed steps of a process (default: 5)")
    parser.add_argument("--memory-limit", default="", help="of our step, such as 2GiB; peers have no such option")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    pythons = installed(options.peer, options.peer_python)
    peak = microkernels.peak_gflops(threads=options.threads)
    rows: dict[str, list[dict[str, object]]] = {}
    asked = {"cell": options.cells, "units": options.units, "layers": options.layers}
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if any(getattr(case, name) not in (wanted or [getattr(case, name)]) for name, wanted in asked.items()):
                continue
            results = results_of(case, options, pythons, Path(folder))
            for peer in pythons or ("",):
                rows.setdefault(peer, []).append(row(case, results, peer, peak))
                print(", ".join(f"{key} {report.cell(value)}" for key, value in rows[peer][-1].items()), flush=True)
    for peer, found in rows.items():
        report.print_table("training of recurrent layers", found)
        print(report.write_csv("recurrent" + (f"_{peer}" if peer not in ("", "torch") else ""), found))
        for key, value in (summary(found) if peer else {}).items():
            print(f"{key}: {value:.2f}")


if __name__ == "__main__":
    main()
