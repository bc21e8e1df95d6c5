"""From the start of `pydtconv train` to its first training step: `python -m benchmarks.start --model resnet34`.

Fresh processes run the command with its arguments until the first step is done; counted are the seconds from the start
of the process to the beginning of that step (interpreter, imports, data, model, plan, memory) and to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from typing import Any, NoReturn

from benchmarks import report
from benchmarks.processes import in_own_process


def one(started: float, words: list[str]) -> None:
    """Runs `pydtconv train` in this process, which ends with the first step."""
    from pydtconv import cli
    from pydtconv.graph.runtime.executor import Executor

    run = Executor.run

    def first_step(executor: Executor, inputs: Any) -> NoReturn:
        begins = time.monotonic()
        run(executor, inputs)
        seconds = {"begins": begins - started, "ends": time.monotonic() - started}
        print(json.dumps(seconds), flush=True)
        os._exit(0)

    Executor.run = first_step  # type: ignore[method-assign]
    raise SystemExit(cli.main(["train", *words]))


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        one(float(sys.argv[2]), sys.argv[3:])
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__)
    parser.add_argument("--model", default="resnet34", help="a network of the zoo (default: resnet34)")
    parser.add_argument("--dataset", default="cifar10", help="default: cifar10")
    parser.add_argument("--batch-size", default="64", help="default: 64")
    parser.add_argument("--runs", type=int, default=7, help="processes (default: 7)")
    options = parser.parse_args()
    words = ["--model", options.model, "--dataset", options.dataset, "--batch-size", options.batch_size]
    runs = [in_own_process("benchmarks.start", ["--one", time.monotonic(), *words]) for _ in range(options.runs)]
    row: dict[str, object] = {"network": options.model, "data": options.dataset, "batch": options.batch_size}
    for what in ("begins", "ends"):
        seconds = [run[what] for run in runs]
        figures = {"median": statistics.median(seconds), "least": min(seconds), "most": max(seconds)}
        row |= {f"{what}, s, {name}": value for name, value in figures.items()}
    report.print_table("the first training step after the start of `pydtconv train`", [row])
    print(report.write_csv("start", [row]))


if __name__ == "__main__":
    main()
