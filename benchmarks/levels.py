"""Sums of gradients of several hosts with several ranks each: `python -m benchmarks.levels`.

Hosts are network namespaces (benchmarks/hosts) whose links are shaped; rank i runs on core i modulo the number of
cores, with one thread.  The ways take turns in the same processes.  Columns:

- messages: all ranks by MPI's all-reduce.  by n of a host: in memory that a host's ranks see, and between hosts by n of
  them.  Seconds, the median over turns of the slowest rank's; buckets are of 4 MiB, all under way together.
- link: what the links alone take, by the bandwidth that ranks measure when they start, and the number that they chose.
- over link: the fastest over that.

Needs root; see benchmarks/hosts.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.hosts import Hosts, missing
from pydtconv.simulation import Network


def measured(options: argparse.Namespace, link: str) -> dict[str, Any]:
    words = ["-m", "benchmarks.level_rank", options.size, options.turns]
    with Hosts(options.hosts, Network.parse(link)) as hosts:
        done = hosts.run(words, ranks=options.ranks, capture_output=True, check=False, cwd=Path(__file__).parents[1])
    if done.returncode:
        raise SystemExit(f"{options.hosts} hosts with {options.ranks} ranks: status {done.returncode}\n{done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    return {
        "hosts": options.hosts, "ranks of a host": options.ranks, "link": link, "MiB": options.size,
        **{f"{way} s": seconds for way, seconds in found["seconds"].items()},
        "link s": found["link"], "chosen": found["chosen"], "over link": min(found["seconds"].values()) / found["link"],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.levels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=2, help="of a host (default: 2)")
    parser.add_argument("--links", nargs="+", default=["1Gbps:100us", "100Mbps:100us"], help="bandwidth:latency")
    parser.add_argument("--size", type=float, default=16.0, help="MiB of gradients (default: 16)")
    parser.add_argument("--turns", type=int, default=5, help="turns of each way (default: 5)")
    options = parser.parse_args()
    reason = missing()
    if reason:
        raise SystemExit(f"benchmarks.levels: {reason}")
    rows = [measured(options, link) for link in options.links]
    report.print_table("sums of gradients", rows)
    print(report.write_csv("levels", rows))


if __name__ == "__main__":
    main()
