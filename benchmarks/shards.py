"""Data-parallel Adam with its state sharded over ranks and without, over a slow link: `python -m benchmarks.shards`.

Each rank is a host of its own (benchmarks/hosts), with one thread; the links between them are shaped.  Rank i runs on
core i modulo the number of cores.  All ways train in the same processes, in turns.  Columns:

- step: seconds of a step, the median over turns of the slowest rank's mean over an epoch of some steps, with all that
  is sent in it.  At its end weights are gathered while nothing else runs; short epochs show more of that.
  ratio: over that without shards.  cpu: seconds of all ranks' cores in a step.
- state: MiB of the optimizer's slots and of gradients that are in a rank's memory at the end of an epoch, and of what
  sums are received into; part: of those without shards.  highest: the most of an epoch, looked at every 20 ms in an
  epoch of its own.

Needs root; see benchmarks/hosts.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.hosts import Hosts, missing
from pydtconv.cli.processes import network_text
from pydtconv.simulation import Network


def measured(model: str, options: argparse.Namespace, link: str) -> list[dict[str, Any]]:
    """A row for each way."""
    words = ["-m", "benchmarks.shard_rank", model, options.batch, options.steps, options.turns, options.bucket_size]
    with Hosts(options.ranks, Network.parse(link)) as hosts:
        done = hosts.run(words, capture_output=True, check=False, cwd=Path(__file__).parents[1])
    if done.returncode:
        raise SystemExit(f"{model} on {options.ranks} hosts: status {done.returncode}\n{done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    plain = found["none"]
    return [
        {
            "model": model, "ranks": options.ranks, "link": link, "shard": way,
            "step s": each["step"], "ratio": each["step"] / plain["step"],
            "cpu s": each["cpu"], "cpu ratio": each["cpu"] / plain["cpu"],
            "state MiB": each["state"], "part": each["state"] / plain["state"],
            "highest MiB": each["highest"], "highest part": each["highest"] / plain["highest"],
        }
        for way, each in found.items()
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shards", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["vgg16", "resnet34"])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--links", nargs="+", default=["1Gbps:100us"], type=network_text, help="bandwidth:latency")
    parser.add_argument("--batch", type=int, default=32, help="32x32 images of a rank (default: 32)")
    parser.add_argument("--bucket-size", type=float, default=4.0, help="MiB of a bucket of gradients (default: 4)")
    parser.add_argument("--steps", type=int, default=20, help="steps of a turn (default: 20)")
    parser.add_argument("--turns", type=int, default=2, help="turns of each way (default: 2)")
    options = parser.parse_args()
    reason = missing()
    if reason:
        raise SystemExit(f"benchmarks.shards: {reason}")
    rows: list[dict[str, Any]] = []
    for model in options.models:
        for link in options.links:
            rows += measured(model, options, link)
            report.print_table(f"{model}, {options.ranks} ranks, {link}", rows[-3:])
    print(report.write_csv("shards", rows))


if __name__ == "__main__":
    main()
