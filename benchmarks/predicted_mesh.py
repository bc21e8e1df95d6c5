"""A rank's step without messages beside its prediction by `simulate --mesh`: `python -m benchmarks.predicted_mesh`.

The plan of one rank with all images and that of a rank of a mesh run in this process, in turns, by one thread; their
messages go nowhere, and zeros come instead of others'.  Each step of a plan counts by its least processor
time: of other work on the machine, and of ranks that wait for each other, nothing is seen.  So this tells what of the
prediction is the model's own error.

rank, predicted: ms of the steps that compute; copies: ms of the exchanges' own work, predicted copies beside it.
Below, the operators that are furthest off.  apart: how much longer a step takes of two ranks that wait for each other
at each exchange than the mean of theirs, by the elapsed times of two of the rank's steps here: what other work on the
machine adds, and the prediction does not know.  A CSV file goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.networks import Case, compiled

CASES = ("unet 64 2", "resnet20 32 16")
MESHES = ("height=2",)


class Clock:
    """A hook: seconds of each step of a plan, of the processor and elapsed, for each run."""

    def __init__(self) -> None:
        self.processor: dict[int, list[float]] = defaultdict(list)
        self.elapsed: dict[int, list[float]] = defaultdict(list)
        self._start = (0.0, 0.0)

    def before(self, index: int, step: Any) -> None:
        self._start = (time.thread_time(), time.perf_counter())

    def after(self, index: int, step: Any) -> None:
        self.processor[index].append(time.thread_time() - self._start[0])
        self.elapsed[index].append(time.perf_counter() - self._start[1])

    def gradient_ready(self, part: slice) -> None:
        """Nothing to do."""


class Nowhere:
    """An exchanger, and a communicator of statistics, whose messages go nowhere; zeros arrive."""

    def __init__(self, ranks: int, receives: Sequence[tuple[int, np.ndarray]] = ()) -> None:
        self.ranks, self.receives = ranks, receives

    def transfer(self, sends: Any, receives: Any, what: str) -> Nowhere:
        return Nowhere(self.ranks, list(receives))

    def start(self) -> None:
        """Nothing to send."""

    def wait(self) -> None:
        for _, buffer in self.receives:
            buffer[...] = 0

    def allreduce(self, array: Any, what: str) -> Any:
        """As if all had the same."""
        array *= self.ranks
        return array

    def allgather(self, row: Any, what: str) -> Any:
        return np.stack([row] * self.ranks)


class Runs:
    """A plan that is run here."""

    def __init__(self, plan: Any, ranks: int) -> None:
        from pydtconv.distribution.data_parallel.synchronizer import Synchronizer
        from pydtconv.graph import Executor, Memory

        self.plan, self.clock, self.memory = plan, Clock(), Memory()
        self.memory.state.exchanger = Nowhere(ranks)
        self.memory.state.synchronizer = Synchronizer(Nowhere(ranks))  # type: ignore[arg-type]
        self.memory.state.portions = {"samples": 1.0}
        self.executor = Executor(plan, self.memory)
        rng = np.random.default_rng(0)
        self.inputs = {
            name: rng.integers(0, 3, tensor.shape) if "int" in tensor.dtype else rng.random(tensor.shape)
            for name, tensor in plan.graph.inputs.items()
        }

    def run(self, steps: int) -> None:
        """So many times, after one that does not count."""
        self.executor.run(self.inputs)
        self.memory.hooks.append(self.clock)
        for _ in range(steps):
            self.executor.run(self.inputs)
        self.memory.hooks.remove(self.clock)

    def seconds(self) -> list[float]:
        """The least processor time of each step of the plan."""
        return [min(self.clock.processor[index]) for index in range(len(self.plan.steps))]

    def apart(self) -> float:
        """Elapsed seconds of two runs that wait for each other behind each exchange, over the mean of the two."""
        from pydtconv.graph.schedule.asynchronous import StartStep
        from pydtconv.ops.exchange import Exchange

        times = np.array([self.clock.elapsed[index] for index in range(len(self.plan.steps))])
        meet = [
            index
            for index, step in enumerate(self.plan.steps)
            if isinstance(step.node.op, Exchange) and not isinstance(step, StartStep)
        ]
        parts = np.array([part.sum(0) for part in np.split(times, meet)])
        ratios = [
            2 * np.maximum(parts[:, i], parts[:, j]).sum() / (parts[:, i].sum() + parts[:, j].sum())
            for i, j in itertools.combinations(range(parts.shape[1]), 2)
        ]
        return float(statistics.mean(ratios))


def compare(case: Case, mesh: dict[str, int], steps: int) -> tuple[dict[str, object], list[dict[str, object]]]:
    """The row of a case, and those of its operators."""
    from pydtconv.ops.exchange import Exchange
    from pydtconv.simulation.meshes import OneRank, as_rank, copying

    model, ranks = compiled(case), int(np.prod(list(mesh.values())))
    model._pydt_training.memory.keeps_gradients = True  # as where they are reduced
    one, runs = model.plan(case.batch), []
    with as_rank(mesh, 0):
        part = model.plan(-(-case.batch // mesh.get("batch", 1)))
    for plan in (one, part, one):  # variables belong to the plan that runs
        runs.append(Runs(plan, ranks))
        runs[-1].run(steps)
    measured = [min(pair) for pair in zip(runs[0].seconds(), runs[2].seconds(), strict=True)]
    model_of = OneRank(one, sum(measured), dict(enumerate(measured)))
    guesses = model_of.seconds(part.steps)
    found: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    copies = [0.0, 0.0]
    for step, seconds, guess in zip(part.steps, runs[1].seconds(), guesses, strict=True):
        if isinstance(step.node.op, Exchange):
            copies[0] += seconds
            copies[1] += copying(step, model_of)
            continue
        found[f"{step.node.op.name} {step.kind}"][0] += seconds
        found[f"{step.node.op.name} {step.kind}"][1] += guess
    own, predicted = (sum(each[i] for each in found.values()) for i in (0, 1))
    head: dict[str, object] = {"network": case.network, "pixels": case.size, "batch": case.batch}
    row = {
        **head, "mesh": ",".join(f"{axis}={extent}" for axis, extent in mesh.items()),
        "one ms": 1e3 * sum(measured), "rank ms": 1e3 * own, "predicted ms": 1e3 * predicted,
        "rank / predicted": own / predicted, "copies ms": 1e3 * copies[0], "predicted copies ms": 1e3 * copies[1],
        "apart": runs[1].apart(),
    }  # fmt: skip
    return row, [*_furthest(found)]


def _furthest(found: dict[str, list[float]]) -> Iterator[dict[str, object]]:
    for name in sorted(found, key=lambda name: -abs(found[name][0] - found[name][1]))[:6]:
        own, guess = found[name]
        yield {"operator": name, "rank ms": 1e3 * own, "predicted ms": 1e3 * guess}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.predicted_mesh",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cases", nargs="+", default=CASES, help='such as "unet 64 2": network, pixels, images')
    parser.add_argument("--meshes", nargs="+", default=MESHES, help="such as height=2,width=2")
    parser.add_argument("--steps", type=int, default=8, help="runs of each plan (default: 8)")
    parser.add_argument("--name", default="predicted_mesh", help="of the file in benchmarks/results/")
    options = parser.parse_args()
    from pydtconv import config
    from pydtconv.cli.processes import mesh_of

    config.set_num_threads(1)
    rows = []
    for words, mesh in itertools.product(options.cases, options.meshes):
        name, size, batch = words.split()
        row, operators = compare(Case(name, int(size), int(batch)), mesh_of(mesh), options.steps)
        rows.append(row)
        report.print_table("a rank without messages", [row])
        report.print_table("operators", operators)
    print(report.write_csv(options.name, rows))


if __name__ == "__main__":
    main()
