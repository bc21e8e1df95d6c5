"""Training of whole networks beside its peers: `python -m benchmarks.train --peer torch --peer tensorflow`.

All sides train the same network on random images by SGD with momentum, in fresh processes that take turns, on the same
number of threads; in float32, or with --dtype mixed_bfloat16 in mixed precision, PyTorch under its autocast.  PyTorch
runs in the fastest of its modes (channels_last, nchw, compile), found by a trial of each; Keras reads the model from
the JSON that pydtconv writes of it, and compiles it as it does by default.  images/s is of the median step over all
rounds; the first step traces and compiles; the memory is the peak of a whole process, code and libraries included.
--cpu-time, for a machine that others use at the same time: one thread, and images a second of processor time in the
fastest step.  A CSV file of each peer and pictures go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks import memory, report
from benchmarks.networks import Case, add_case_arguments, batch_of, cases, compiled, flops
from benchmarks.peers.description import describe
from benchmarks.peers.table import PEERS, add_peer_arguments, installed
from benchmarks.processes import in_own_process

MODES = ("channels_last", "nchw", "compile")
Result = dict[str, Any]


def ours(case: Case, steps: int, clock: str) -> Result:
    """Trains with pydtconv in this process.  clock: a function of `time` that gives seconds."""
    model = compiled(case)
    x, y = batch_of(case, model)
    seconds, now = [], getattr(time, clock)
    for _ in range(steps + 1):
        start = now()
        model.train_on_batch(x, y)
        seconds.append(now() - start)
    return {"first": seconds[0], "seconds": seconds[1:], "peak MiB": memory.peak()}


class Sides:
    """All sides of one case; steps and threads of a process, PyTorch's mode, dtype: policy of all layers.

    pythons: the peers that are measured, and their interpreters.
    """

    def __init__(
        self,
        case: Case,
        folder: Path,
        *,
        steps: int,
        threads: int,
        pythons: Mapping[str, str] = MappingProxyType({}),
        mode: str = MODES[0],
        dtype: str = "float32",
        cpu_time: bool = False,
    ) -> None:
        self.case, self.steps, self.threads, self.mode, self.dtype = case, steps, threads, mode, dtype
        self.pythons = pythons
        self.clock, self.step_of = ("process_time", min) if cpu_time else ("perf_counter", statistics.median)
        model = compiled(case)
        self.flops = flops(model)
        self.described, self.model = (folder / f"{case.network}_{case.size}{end}.json" for end in ("_described", ""))
        self.described.write_text(json.dumps(describe(model)))
        self.model.write_text(model.to_json())

    def run_ours(self) -> Result:
        return in_own_process("benchmarks.train", ["--one", *self.case, self.steps, self.clock], self.threads)

    def run_peer(self, name: str = "torch", mode: str = "", steps: int | None = None) -> Result:
        """mode, steps: where they are others than those of all processes."""
        steps = steps or self.steps
        words: list[object] = [self.model, self.case.batch, steps, self.clock]
        if name == "torch":
            words = [self.described, self.case.size, self.case.batch, mode or self.mode, steps, self.dtype, self.clock]
        return PEERS[name].run("train", words, self.threads, self.pythons[name])

    def choose_mode(self, modes: list[str]) -> None:
        """Takes the mode of PyTorch whose best of a few steps is the fastest."""
        if len(modes) > 1:
            best = {mode: min(self.run_peer("torch", mode, 3)["seconds"]) for mode in modes}
            self.mode = min(best, key=best.__getitem__)

    def rows(self, rounds: int) -> dict[str, dict[str, object]]:
        """The row of each peer; that of "" where there is none."""
        mine: list[Result] = []
        theirs: dict[str, list[Result]] = {name: [] for name in self.pythons}
        for _ in range(rounds):
            mine.append(self.run_ours())
            for name, results in theirs.items():
                results.append(self.run_peer(name))
        return {name: self._row(mine, name, theirs.get(name, [])) for name in theirs or ("",)}

    def _row(self, mine: list[Result], name: str, theirs: list[Result]) -> dict[str, object]:
        rate, memory, first = self._figures(mine)
        row: dict[str, object] = {
            "network": self.case.network, "images": self.case.size, "batch": self.case.batch, "images/s": rate,
        }  # fmt: skip
        if name:
            (peer_rate, peer_memory, peer_first), label = self._figures(theirs), PEERS[name].label
            row |= {f"{label} images/s": peer_rate, "speed ratio": rate / peer_rate, "MiB": memory}
            row |= {f"{label} MiB": peer_memory, "memory ratio": memory / peer_memory}
            row |= {"first step s": first, f"{label} first step s": peer_first}
            row |= {"PyTorch mode": self.mode} if name == "torch" else {}
        else:
            row |= {"MiB": memory, "first step s": first}
        return row | {"GFLOPS": rate * self.flops / 1e9}

    def _figures(self, results: list[Result]) -> tuple[float, float, float]:
        """Images per second of the median step, or the fastest; the medians of the peaks and of the first steps."""
        step = self.step_of([second for result in results for second in result["seconds"]])
        peak, first = (statistics.median(result[key] for result in results) for key in ("peak MiB", "first"))
        return self.case.batch / step, peak, first


def summary(rows: list[dict[str, object]]) -> dict[str, float]:
    """Geometric means and the worst of the ratios."""
    speed = [float(str(row["speed ratio"])) for row in rows]
    memory = [float(str(row["memory ratio"])) for row in rows]
    return {
        "speed, geometric mean": statistics.geometric_mean(speed),
        "speed, worst": min(speed),
        "memory, geometric mean": statistics.geometric_mean(memory),
        "memory, worst": max(memory),
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train", description=__doc__)
    add_peer_arguments(parser)
    add_case_arguments(parser)
    parser.add_argument("--rounds", type=int, default=3, help="processes of each side")
    parser.add_argument("--steps", type=int, default=5, help="timed steps of a process")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cpu-time", action="store_true", help="processor time of one thread instead of elapsed time")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES), help="of PyTorch that are tried")
    parser.add_argument(
        "--dtype", choices=("float32", "mixed_bfloat16"), default="float32", help="policy of all layers"
    )
    parser.add_argument("--name", help="of the files in benchmarks/results/ (default: train, or train_ and the dtype)")
    options = parser.parse_args()
    options.threads = 1 if options.cpu_time else options.threads
    options.name = options.name or ("train" if options.dtype == "float32" else f"train_{options.dtype}")
    return options


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        network, size, batch, steps, clock = sys.argv[2:]
        print(json.dumps(ours(Case(network, int(size), int(batch)), int(steps), clock)))
        return
    options = parse()
    os.environ["PYDTCONV_DTYPE"] = options.dtype  # of the processes that train
    pythons = installed(options.peer, options.peer_python)
    rows: dict[str, list[dict[str, object]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(tuple(options.networks), tuple(options.sizes), options.batch):
            sides = Sides(
                case,
                Path(folder),
                steps=options.steps,
                threads=options.threads,
                pythons=pythons,
                mode=options.modes[0],
                dtype=options.dtype,
                cpu_time=options.cpu_time,
            )
            if "torch" in pythons:
                sides.choose_mode(options.modes)
            for peer, row in sides.rows(options.rounds).items():
                rows.setdefault(peer, []).append(row)
                print(", ".join(f"{key} {report.cell(value)}" for key, value in row.items()), flush=True)
    for peer, found in rows.items():
        written(options.name, peer, found)


def written(name: str, peer: str, rows: list[dict[str, object]]) -> None:
    """Prints the table of a peer and writes its files, which have its name behind `name` where it is not PyTorch."""
    name += "" if peer in ("", "torch") else f"_{peer.replace('-', '_')}"
    report.print_table("training of whole networks", rows)
    print(report.write_csv(name, rows))
    if peer:
        for key, value in summary(rows).items():
            print(f"{key}: {value:.2f}")
        draw(name, PEERS[peer].label, rows)


def draw(name: str, peer: str, rows: list[dict[str, object]]) -> None:
    columns = {"images/s": "speed ratio", "peak memory": "memory ratio"}
    title = f"training, relative to {peer}"
    print(report.plot_networks(name, title, rows, columns, f"pydtconv / {peer}", 1.0, peer))


if __name__ == "__main__":
    main()
