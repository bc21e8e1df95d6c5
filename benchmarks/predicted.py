"""Predicted times of a training step beside measured ones, node by node: `python -m benchmarks.predicted`.

Each network trains some steps in a process of its own, with a time for each step of its plan, the median over training
steps.  Beside these stand the times that the planner reckons with (graph/schedule/step_times.py): `predicted` by the
cost model alone, as for a model that has never been trained here, and `from half` where every second step's time is
known, and tells of the others.  Columns are predicted over measured seconds: of convolutions, of all other nodes, of
the whole.  Below, the operators that are furthest off.  A CSV file goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from typing import Any

from benchmarks import report
from benchmarks.networks import Case, batch_of, compiled
from benchmarks.processes import in_own_process

CASES = ("resnet18 224 8", "resnet50 224 4", "vgg19 224 2", "alexnet 224 32", "densenet121 64 16", "unet 256 1")


class Clock:
    """A hook that times steps of a plan."""

    def __init__(self) -> None:
        self.seconds: dict[int, list[float]] = {}
        self._start = 0.0

    def before(self, index: int, step: Any) -> None:
        self._start = time.perf_counter()

    def after(self, index: int, step: Any) -> None:
        self.seconds.setdefault(index, []).append(time.perf_counter() - self._start)

    def gradient_ready(self, part: slice) -> None:
        """Nothing to do."""


def measure(case: Case, steps: int) -> list[tuple[str, bool, float, float, float]]:
    """Of each step of the plan: operator and kind, whether it convolves, and seconds: measured and two predictions."""
    from pydtconv import config
    from pydtconv.graph.schedule.step_times import StepTimes, signature

    model = compiled(case)
    x, y = batch_of(case, model)
    clock = Clock()
    model.train_on_batch(x, y)
    model._pydt_training.memory.hooks.append(clock)
    for _ in range(steps):
        model.train_on_batch(x, y)
    plan = model._pydt_steps.plans[-1]
    seconds = [statistics.median(clock.seconds[index]) for index in range(len(plan.steps))]
    guesses = StepTimes(config.num_threads(), {}).of(plan.steps)
    half = {signature(step): value for step, value in [*zip(plan.steps, seconds, strict=True)][::2]}
    told = StepTimes(config.num_threads(), half).of(plan.steps)
    return [
        (f"{step.node.op.name} {step.kind}", bool(step.node.op.passes) and step.kind != "update", *values)
        for step, *values in zip(plan.steps, seconds, guesses, told, strict=True)
    ]  # type: ignore[misc]


def row_of(case: Case, found: list[Any]) -> dict[str, Any]:
    def ratio(column: int, which: Any = None) -> float:
        chosen = [each for each in found if which is None or each[1] is which]
        return sum(each[column] for each in chosen) / max(sum(each[2] for each in chosen), 1e-12)

    return {
        "network": case.network, "pixels": case.size, "batch": case.batch,
        "measured ms": 1e3 * sum(each[2] for each in found),
        "convolutions": ratio(3, True), "others": ratio(3, False), "predicted": ratio(3), "from half": ratio(4),
    }  # fmt: skip


def _case(words: str) -> str:
    if len(words.split()) != 3 or not all(word.isdecimal() for word in words.split()[1:]):
        raise argparse.ArgumentTypeError(f"expected network, pixels and images, got {words!r}")
    return words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    told = 'such as "resnet18 224 8": network, pixels, images'
    parser.add_argument("--cases", nargs="+", default=CASES, type=_case, help=told)
    parser.add_argument("--steps", type=int, default=3, help="timed steps (default: 3)")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--top", type=int, default=8, help="operators that are shown (default: 8)")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        network, size, batch, steps = options.one
        print(json.dumps({"steps": measure(Case(network, int(size), int(batch)), int(steps))}))
        return
    rows, off = [], Counter[str]()
    for words in options.cases:
        network, size, batch = words.split()
        case = Case(network, int(size), int(batch))
        found = in_own_process("benchmarks.predicted", ["--one", *words.split(), options.steps], options.threads)
        rows.append(row_of(case, found["steps"]))
        print(", ".join(f"{key} {report.cell(value)}" for key, value in rows[-1].items()), flush=True)
        for name, _, seconds, guess, _ in found["steps"]:
            off[name] += 1e3 * (guess - seconds)
    report.print_table("predicted over measured seconds of a step", rows)
    for name, value in sorted(off.items(), key=lambda each: -abs(each[1]))[: options.top]:
        print(f"{name:32} {value:+9.2f} ms")
    print(report.write_csv("predicted", rows))


if __name__ == "__main__":
    main()
