"""A training step while another program computes: `python -m benchmarks.busy --peer torch`.

The same steps are timed on an idle machine and beside a process that keeps one core busy, on all cores and on one
thread; both sides in fresh processes, in turns, and the medians of all steps count.  With c cores the other program
takes half of one in the long run, so a step can take 2 c / (2 c - 1) of its idle time at best, 1.33 on two cores; that
it never takes longer than on one thread is what small pieces of work are for.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import report
from benchmarks.networks import Case, add_case_arguments, cases
from benchmarks.peers.table import add_peer_arguments, installed
from benchmarks.train import Result, Sides


@contextmanager
def one_core_busy() -> Iterator[None]:
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        other.kill()
        other.wait()


def idle_and_busy(run: Callable[[], Result], rounds: int) -> tuple[float, float]:
    """Milliseconds of the median step, on an idle machine and beside the other program."""
    idle: list[float] = []
    busy: list[float] = []
    for _ in range(rounds):
        idle += run()["seconds"]
        with one_core_busy():
            busy += run()["seconds"]
    found = 1e3 * statistics.median(idle), 1e3 * statistics.median(busy)
    print(f"idle {found[0]:.1f} ms, busy {found[1]:.1f} ms a step", flush=True)
    return found


def row(case: Case, options: argparse.Namespace, folder: Path) -> dict[str, object]:
    threads = len(os.sched_getaffinity(0))
    pythons = installed(options.peer, options.peer_python)
    sides = Sides(case, folder, steps=options.steps, threads=threads, pythons=pythons)
    idle, busy = idle_and_busy(sides.run_ours, options.rounds)
    sides.threads = 1
    _, busy_one = idle_and_busy(sides.run_ours, options.rounds)
    found: dict[str, object] = {"network": case.network, "images": case.size, "batch": case.batch, "idle ms": idle}
    found |= {"busy ms": busy, "busy / idle": busy / idle, "busy, one thread ms": busy_one}
    if pythons:
        sides.threads = threads
        peer_idle, peer_busy = idle_and_busy(sides.run_peer, options.rounds)
        found |= {"PyTorch idle ms": peer_idle, "PyTorch busy ms": peer_busy, "PyTorch ratio": peer_busy / peer_idle}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy", description=__doc__)
    add_peer_arguments(parser, ("torch",))
    add_case_arguments(parser)
    parser.set_defaults(networks=("resnet34", "googlenet"), sizes=(32,), batch=16)
    parser.add_argument("--rounds", type=int, default=2, help="processes of each kind")
    parser.add_argument("--steps", type=int, default=8, help="timed steps of a process")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chosen = cases(tuple(options.networks), tuple(options.sizes), options.batch)
        rows = [row(case, options, Path(folder)) for case in chosen]
    report.print_table("a step beside another program", rows)
    print(report.write_csv("busy", rows))


if __name__ == "__main__":
    main()
