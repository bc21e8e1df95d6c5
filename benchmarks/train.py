"""Training of whole networks beside PyTorch: `python -m benchmarks.train --peer torch`.

Both sides train the same network on random images by SGD with momentum, in fresh processes that take turns, on the
same number of threads; in float32, or with --dtype mixed_bfloat16 in mixed precision, PyTorch under its autocast.
PyTorch runs in the fastest of its modes (channels_last, nchw, compile), found by a trial of each.  images/s is of the
median step over all rounds; the memory is the peak of a whole process, code and libraries included.  --cpu-time, for a
machine that others use at the same time: one thread, and images a second of processor time in the fastest step.  A CSV
file and pictures go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import memory, report
from benchmarks.networks import Case, add_case_arguments, batch_of, cases, compiled, flops
from benchmarks.peers.description import describe
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
    return {"seconds": seconds[1:], "peak MiB": memory.peak()}


class Sides:
    """Both sides of one case; steps and threads of a process, the peer's mode, dtype: policy of all layers."""

    def __init__(
        self,
        case: Case,
        folder: Path,
        *,
        steps: int,
        threads: int,
        mode: str = MODES[0],
        dtype: str = "float32",
        cpu_time: bool = False,
    ) -> None:
        self.case, self.steps, self.threads, self.mode, self.dtype = case, steps, threads, mode, dtype
        self.clock, self.step_of = ("process_time", min) if cpu_time else ("perf_counter", statistics.median)
        model = compiled(case)
        self.flops = flops(model)
        self.file = folder / f"{case.network}_{case.size}.json"
        self.file.write_text(json.dumps(describe(model)))

    def run_ours(self) -> Result:
        return in_own_process("benchmarks.train", ["--one", *self.case, self.steps, self.clock], self.threads)

    def run_peer(self, mode: str, steps: int) -> Result:
        words = [self.file, self.case.size, self.case.batch, mode, steps, self.dtype, self.clock]
        return in_own_process("benchmarks.peers.torch_train", words, self.threads)

    def choose_mode(self, modes: list[str]) -> None:
        """Takes the mode whose best of a few steps is the fastest."""
        if len(modes) > 1:
            best = {mode: min(self.run_peer(mode, 3)["seconds"]) for mode in modes}
            self.mode = min(best, key=best.__getitem__)

    def row(self, rounds: int, peer: bool) -> dict[str, object]:
        mine, theirs = [], []
        for _ in range(rounds):
            mine.append(self.run_ours())
            if peer:
                theirs.append(self.run_peer(self.mode, self.steps))
        rate, memory = self._figures(mine)
        row: dict[str, object] = {
            "network": self.case.network, "images": self.case.size, "batch": self.case.batch, "images/s": rate,
        }  # fmt: skip
        if peer:
            peer_rate, peer_memory = self._figures(theirs)
            row |= {"PyTorch images/s": peer_rate, "speed ratio": rate / peer_rate, "MiB": memory}
            row |= {"PyTorch MiB": peer_memory, "memory ratio": memory / peer_memory, "PyTorch mode": self.mode}
        else:
            row["MiB"] = memory
        return row | {"GFLOPS": rate * self.flops / 1e9}

    def _figures(self, results: list[Result]) -> tuple[float, float]:
        """Images per second of the median step, or the fastest, and the median of the peaks."""
        step = self.step_of([second for result in results for second in result["seconds"]])
        return self.case.batch / step, statistics.median(result["peak MiB"] for result in results)


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
    parser.add_argument("--peer", choices=("torch",), help="measure PyTorch too")
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
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(tuple(options.networks), tuple(options.sizes), options.batch):
            sides = Sides(
                case,
                Path(folder),
                steps=options.steps,
                threads=options.threads,
                mode=options.modes[0],
                dtype=options.dtype,
                cpu_time=options.cpu_time,
            )
            if options.peer:
                sides.choose_mode(options.modes)
            rows.append(sides.row(options.rounds, bool(options.peer)))
            print(", ".join(f"{key} {report.cell(value)}" for key, value in rows[-1].items()), flush=True)
    report.print_table("training of whole networks", rows)
    print(report.write_csv(options.name, rows))
    if options.peer:
        for key, value in summary(rows).items():
            print(f"{key}: {value:.2f}")
        draw(options.name, rows)


def draw(name: str, rows: list[dict[str, object]]) -> None:
    columns = {"images/s": "speed ratio", "peak memory": "memory ratio"}
    print(
        report.plot_networks(name, "training, relative to PyTorch", rows, columns, "pydtconv / PyTorch", 1.0, "PyTorch")
    )


if __name__ == "__main__":
    main()
