"""What AUTO's choices of convolution algorithms cost beyond the best ones: `python -m benchmarks.auto`.

Each network is trained with every algorithm in turn in every pass of its convolutions, and each pass is timed where it
stands, within the step, with caches as the step leaves them, together with the batch normalization that algorithms do
in passing or leave to do.  The best of a pass is the algorithm with its shortest time; what AUTO's pick takes beyond
that, summed over all passes, is AUTO's loss, in percent of a step: by the cost model, and after tuning at first use.
The named variants are put together from the same times.  Taking minima makes the best ones look a little better than
they are.

Each network has a process and a cache of tuning of its own.  CSV files and a picture go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.networks import Case, add_case_arguments, cases, compiled
from benchmarks.processes import Kept, in_own_process
from pydtconv import config
from pydtconv.conv import VARIANTS, ConvProblem, timings
from pydtconv.conv.problem import DIRECTIONS
from pydtconv.conv.selection import ranking
from pydtconv.conv.tuning import Task
from pydtconv.profiling import Profiler
from pydtconv.profiling.profile import Timing

#: algorithms that took this many times as long as the best one in the first round are not timed again
HOPELESS = 1.5
#: parts of batch normalization's backward that backward_data before it may do
BEGUN = ("backward", "mean terms")
Place = tuple[str, str]  # a node and the part of its pass
Row = dict[str, Any]


class Network:
    """A network that is trained with given choices, and the times of its convolutions."""

    def __init__(self, case: Case, steps: int) -> None:
        rng = np.random.default_rng(0)
        self.case, self.steps = case, steps
        self.x = rng.standard_normal((case.batch, case.size, case.size, 3), np.float32)
        self.y = rng.integers(0, case.classes, case.batch)
        self.model = compiled(case)
        self.tasks: dict[Place, Task] = {}
        self.times: dict[Place, dict[str, float]] = {}

    def run(self, choice: Mapping[Task, str] | None) -> tuple[float, dict[Place, str]]:
        """Seconds of the median step and the algorithms that it took; None leaves the choice as it is."""
        if choice is not None:
            timings.path().unlink(missing_ok=True)
            with timings.alone(1.0):
                timings.add({timings.key(*task): {name: 1e-9} for task, name in choice.items()})
        self.model.compile("sgd", "sparse_categorical_crossentropy")  # plans anew
        with Profiler(self.model, steps=self.steps, skip=1) as profiler:
            for _ in range(self.steps + 1):
                self.model.train_on_batch(self.x, self.y)
        return profiler.profile.seconds, self._note(profiler)

    def _note(self, profiler: Profiler) -> dict[Place, str]:
        taken = {}
        plan = self.model.plan(self.case.batch)
        nodes = {node.name: node for node in plan.algorithms}
        timings = profiler.profile.timings
        for i, timing in enumerate(timings):
            if not timing.algorithm or timing.node not in nodes:
                continue
            node, place = nodes[timing.node], (timing.node, timing.direction)
            op: Any = node.op
            direction = op.passes[DIRECTIONS.index(timing.direction)]
            self.tasks[place] = op.problem(*(tensor.spec for tensor in node.inputs[:2])), direction
            times = self.times.setdefault(place, {})
            seconds = with_normalization(timings, i)
            times[timing.algorithm] = min(times.get(timing.algorithm, math.inf), seconds)
            taken[place] = timing.algorithm
        return taken

    def by_task(self) -> dict[Task, dict[str, float]]:
        """Seconds by algorithm of all places of a task together."""
        sums: dict[Task, dict[str, float]] = {}
        for place, times in self.times.items():
            found = sums.setdefault(self.tasks[place], {})
            for name, seconds in times.items():
                found[name] = found.get(name, 0.0) + seconds
        return sums

    def best(self) -> dict[Task, str]:
        return {task: min(times, key=times.__getitem__) for task, times in self.by_task().items()}

    def candidates(self) -> dict[Task, list[str]]:
        """The algorithms of each task that are worth another look, as the cost model ranks them."""
        sums = self.by_task()
        return {
            task: [name for name in ranking(*task) if times.get(name, 0.0) < HOPELESS * min(times.values())]
            for task, times in sums.items()
        }

    def sum_of(self, choice: Mapping[Task, str]) -> float:
        return sum(times[choice[task]] for task, times in self.by_task().items())


def with_normalization(timings: Sequence[Timing], i: int) -> float:
    """Seconds of a pass, with what some algorithms do in passing and others leave to do.

    That are moments of what it writes, the batch normalization that it reads through, right before it, and sums over
    gradients that it writes, with which backward of a batch normalization begins, the next one.
    """
    own = timings[i]
    seconds = own.seconds
    for part in timings[i + 1 :]:
        parts_of_own = part.node == own.node and part.direction.startswith(f"{own.direction}_")
        begins = own.direction == "backward_data" and part.kind == "batchnorm" and part.direction in BEGUN
        if parts_of_own or begins:
            seconds += part.seconds
        elif part.direction != "update":
            break
    before = timings[i - 1] if i else own
    if before.kind == "batchnorm" and before.direction in ("forward", "recompute"):
        seconds += before.seconds
    return seconds


def measure(case: Case, rounds: int, steps: int, seconds: float) -> dict[str, Any]:
    """All figures of a network, in this process; the folder of the cache is one that may be written to."""
    network = Network(case, steps)
    step = dict.fromkeys(("model", "tuned"), math.inf)
    network.run({})
    for turn in range(rounds):
        worth = network.candidates() if turn else {task: list(ranking(*task)) for task in network.by_task()}
        for i in range(max(map(len, worth.values()))):
            network.run({task: names[i % len(names)] for task, names in worth.items()})
    timings.path().unlink()
    timings.forget()
    config.set_conv_tuning(seconds)
    start = time.perf_counter()
    network.model.compile("sgd", "sparse_categorical_crossentropy")
    network.model.train_on_batch(network.x, network.y)
    start_up = time.perf_counter() - start
    tuned = {network.tasks[place]: name for place, name in network.run(None)[1].items()}
    config.set_conv_tuning(0)
    first = {task: ranking(*task)[0] for task in tuned}
    choices: dict[str, dict[Task, str]] = {"model": first, "tuned": tuned}
    for _ in range(2):
        for name, choice in choices.items():
            step[name] = min(step[name], network.run(choice)[0])
    return figures(network, choices, step, start_up)


def figures(
    network: Network, choices: Mapping[str, Mapping[Task, str]], step: Mapping[str, float], start_up: float
) -> dict[str, Any]:
    sums, best = network.by_task(), network.best()
    least = network.sum_of(best)
    losses = {name: network.sum_of(choices[name]) - least for name in ("model", "tuned")}
    variants = {name: network.sum_of(by_variant(name, choices["model"], sums)) for name in VARIANTS if name != "AUTO"}
    fixed = min(variants, key=variants.__getitem__)
    row: Row = {
        "step ms": 1e3 * step["model"], "tuned ms": 1e3 * step["tuned"],
        "best convolutions ms": 1e3 * least, "loss %": 100 * losses["model"] / step["model"],
        "tuned loss %": 100 * losses["tuned"] / step["tuned"], "best variant": fixed,
        "its step ms": 1e3 * (step["model"] + variants[fixed] - least - losses["model"]), "first step s": start_up,
    }  # fmt: skip
    passes = [
        {
            "pass": task[1], "problem": short(task[0]), "times": sum(other == task for other in network.tasks.values()),
            "model": choices["model"][task], "tuned": choices["tuned"][task], "best": best[task],
            "best ms": 1e3 * times[best[task]],
            "lost %": 100 * (times[choices["model"][task]] - times[best[task]]) / step["model"],
            "tuned lost %": 100 * (times[choices["tuned"][task]] - times[best[task]]) / step["tuned"],
        }
        for task, times in sums.items()
    ]  # fmt: skip
    return {"row": row, "passes": passes}


def by_variant(
    variant: str, otherwise: Mapping[Task, str], sums: Mapping[Task, Mapping[str, float]]
) -> dict[Task, str]:
    """The choices of a named variant, of the cost model where it has none."""
    named = {task: VARIANTS[variant].algorithm(task[1]) or "" for task in sums}
    return {task: name if name in sums[task] else otherwise[task] for task, name in named.items()}


def short(p: ConvProblem) -> str:
    stride = f" /{p.sh}" if p.sh > 1 else ""
    return f"{p.n}x{p.ih}x{p.iw}x{p.ci} * {p.kh}x{p.kw}x{p.ci // p.groups}x{p.co}{stride}"


def with_own_cache(words: list[Any], threads: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYDTCONV_CACHE"] = folder
        return in_own_process("benchmarks.auto", words, threads)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.auto", description=__doc__)
    add_case_arguments(parser)
    parser.add_argument("--threads", type=int, default=config.num_threads())
    parser.add_argument("--rounds", type=int, default=2, help="turns of all algorithms (default: 2)")
    parser.add_argument("--steps", type=int, default=2, help="timed steps of a turn (default: 2)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tuning at first use (default: 60)")
    parser.add_argument("--worst", type=int, default=8, help="passes of a network that are named (default: 8)")
    parser.add_argument("--keep", type=Path, help="file of measurements, which are taken from there when it has them")
    parser.add_argument("--name", default="auto", help="of the files in benchmarks/results/")
    return parser.parse_args()


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        network, size, batch, rounds, steps, seconds = sys.argv[2:]
        case = Case(network, int(size), int(batch))
        print(json.dumps(measure(case, int(rounds), int(steps), float(seconds))))
        return
    options = parse()
    rows: list[Row] = []
    passes: list[Row] = []
    kept = Kept(options.keep)
    for case in cases(tuple(options.networks), tuple(options.sizes), options.batch):
        words = ["--one", *case, options.rounds, options.steps, options.seconds]
        found, origin = kept.get(str(case), partial(with_own_cache, words, options.threads))
        rows.append({"network": case.network, "images": case.size, "batch": case.batch} | found["row"] | origin)
        mine = [{"network": case.network, "images": case.size} | row | origin for row in found["passes"]]
        passes += mine
        worst = sorted(mine, key=lambda row: -max(row["lost %"], row["tuned lost %"]))[: options.worst]
        report.print_table(f"{case}: loss {rows[-1]['loss %']:.1f}%, tuned {rows[-1]['tuned loss %']:.1f}%", worst)
        sys.stdout.flush()
    report.print_table("AUTO against the best algorithm of each pass", rows)
    print(report.write_csv(options.name, rows))
    print(report.write_csv(f"{options.name}_passes", passes))
    title, columns = "AUTO's loss to the best algorithm of each pass", {"cost model": "loss %", "tuned": "tuned loss %"}
    print(report.plot_networks(options.name, title, rows, columns, "% of a step"))


if __name__ == "__main__":
    main()
