"""Data-parallel training over slow links, blocking and overlapped: `python -m benchmarks.links`.

Each rank is a host of its own (benchmarks/hosts), with one thread; the links between them are shaped.  Rank i runs on
core i modulo the number of cores.  Columns:

- network: what was measured, as `pydtconv simulate --network` takes it: bandwidth and latency of messages between two
  ranks, the rate at which MPI adds, and the one at which a core could send and receive if it did nothing else, by how
  much slower products of small matrices become beside all-reduces.  The latter has what the links cost this machine.
- compute: a step without communication, all ranks at the same time; blocking, overlapped: whole steps.
- waiting: what ranks wait in a blocking step and in an overlapped one.
- hideable: how much of the blocking step's waiting would fall into backward if each bucket were reduced as soon as its
  gradients are ready and the bucket before is done, each in its share of that time by bytes; from the profile of the
  step without communication.
- hidden %: (waiting blocking - waiting overlapped) / hideable.  It can be above 100: several reductions that are under
  way together use a link better than one, and backward takes longer where cores work for the network, too.
- saved %: (blocking - overlapped) / hideable: what the cores do for the network beside backward counts as not hidden.
- simulated: `pydtconv simulate` with this profile, of the slowest rank, and network; ratio: the measured step over it.

A row counts medians over steps, and of all ranks the slowest step, the mean waiting.  Results of runs with different
--networks, --ranks and --links go into one CSV file.  Needs root; see benchmarks/hosts.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.hosts import Hosts, missing
from pydtconv.cli.processes import network_text
from pydtconv.profiling import Profile
from pydtconv.simulation import Network, Workload, predict
from pydtconv.simulation.scaling import timeline

Row = dict[str, object]
_KEY = ("model", "ranks", "link")


def measured(network: str, ranks: int, link: str, batch: int, bucket: float, steps: int) -> Row:
    """One job of so many hosts."""
    bucket_bytes = int(bucket * 2**20)
    words = ["-m", "benchmarks.link_rank", network, batch, steps, bucket_bytes]
    with Hosts(ranks, Network.parse(link)) as hosts:
        done = hosts.run(words, capture_output=True, check=False, cwd=Path(__file__).parents[1])
        sent, seconds = hosts.sent(), hosts.switch_seconds()
    if done.returncode:
        raise SystemExit(f"{network} on {ranks} hosts: status {done.returncode}\n{done.stderr[-3000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    row: Row = {"model": network, "ranks": ranks, "link": link, "batch": batch * ranks}
    return row | figures(found, ranks, batch, bucket_bytes) | {
        "sent MB": 1e-6 * sum(sent) / ranks, "switch ns/byte": 1e9 * seconds / sum(sent), **report.origin(),
    }  # fmt: skip


def figures(found: dict[str, Any], ranks: int, batch: int, bucket_bytes: int) -> Row:
    """See the columns above."""
    network = Network(**found["network"])
    slowest = max(map(Profile.from_dict, found["profiles"]), key=lambda profile: profile.seconds)
    workload = Workload([slowest])
    work = workload.work(batch, bucket_bytes)
    step = {mode: max(seconds for seconds, _ in found[mode]) for mode in ("none", "blocking", "overlapped")}
    waiting = {mode: statistics.mean(waits for _, waits in found[mode]) for mode in ("blocking", "overlapped")}
    hideable = timeline(work, [waiting["blocking"] * bucket.share for bucket in work.buckets]).beside
    predicted = predict(workload, ranks, batch * ranks, network, "best", bucket_bytes)
    return {
        "network": told(network),
        "compute s": step["none"], "blocking s": step["blocking"], "overlapped s": step["overlapped"],
        "waiting blocking": waiting["blocking"], "waiting overlapped": waiting["overlapped"], "hideable": hideable,
        "hidden %": 100 * (waiting["blocking"] - waiting["overlapped"]) / hideable,
        "saved %": 100 * (step["blocking"] - step["overlapped"]) / hideable,
        "simulated blocking": predicted.blocking, "ratio b": step["blocking"] / predicted.blocking,
        "simulated overlapped": predicted.overlapped, "ratio o": step["overlapped"] / predicted.overlapped,
    }  # fmt: skip


def told(network: Network) -> str:
    """In the form that Network.parse reads."""
    text = f"{8e-6 / network.beta:.0f}Mbps:{1e6 * network.alpha:.0f}us:{1e-9 / network.gamma:.1f}GB/s"
    return text + (f":{1e-6 / network.delta:.0f}MB/s" if network.delta else "")


def merged(rows: list[Row]) -> list[Row]:
    """The rows, and those of the CSV file that they do not replace."""
    old = report.read_csv("links")
    new = {tuple(str(row[name]) for name in _KEY) for row in rows}
    kept = [row for row in old if tuple(str(row[name]) for name in _KEY) not in new and row.keys() == rows[0].keys()]
    return sorted(kept + rows, key=lambda row: tuple(str(row[name]) for name in _KEY))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.links", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["vgg16", "resnet34"])
    parser.add_argument("--ranks", nargs="+", type=int, default=[2, 4])
    parser.add_argument(
        "--links", nargs="+", default=["1Gbps:100us", "100Mbps:100us"], type=network_text, help="bandwidth:latency"
    )
    parser.add_argument("--batch", type=int, default=32, help="32x32 images of a rank (default: 32)")
    parser.add_argument("--bucket-size", type=float, default=4.0, help="MiB of a bucket of gradients (default: 4)")
    parser.add_argument("--steps", type=int, default=3, help="steps of each mode in each of two turns (default: 3)")
    options = parser.parse_args()
    if any(ranks < 2 or ranks % 2 for ranks in options.ranks):
        parser.error(f"--ranks: expected even numbers, got {options.ranks}")
    return options


def main() -> None:
    options = parse()
    reason = missing()
    if reason:
        raise SystemExit(f"benchmarks.links: {reason}")
    rows: list[Row] = []
    for model in options.models:
        for ranks in options.ranks:
            for link in options.links:
                rows.append(measured(model, ranks, link, options.batch, options.bucket_size, options.steps))
                report.print_table(f"{model}, {ranks} ranks, {link}", rows[-1:])
                print(report.write_csv("links", merged(rows)), flush=True)
    every = merged(rows)
    labels = [f"{row['model']}, {row['ranks']} ranks, {str(row['link']).split(':')[0]}" for row in every]
    series = {
        name.removesuffix(" s"): [float(str(row[name])) / float(str(row["compute s"])) for row in every]
        for name in ("blocking s", "simulated blocking", "overlapped s", "simulated overlapped")
    }
    title = "steps over slow links; 1 is the step without communication"
    print(report.plot_bars("links", title, labels, series, "times the step without communication", rows=every))


if __name__ == "__main__":
    main()
