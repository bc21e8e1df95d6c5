"""Data-parallel training beside PyTorch's DistributedDataParallel over gloo: `python -m benchmarks.ddp`.

Each rank is a host of its own (benchmarks/hosts), with one thread; the links between them are shaped.  Rank i runs on
core i modulo the number of cores.  Both sides train the same network on 32x32 images by SGD with momentum, in the same
processes, in turns.  DistributedDataParallel has the fastest of some sizes of buckets (cap MiB, found with the
fewest ranks at the first link), buckets that are views of gradients, a static graph and channels_last, and does not
send buffers; ours has its defaults.  Columns, of ours and of the peer:

- images/s: of all ranks, by the median over turns of the slowest rank's step; ratio: ours over the peer's.
- alone: seconds of such a step without communication, all ranks at the same time.  step: with communication.
- reduce: seconds in which the reductions of a step are made where nobody computes.
- hidden %: 1 - (step - alone) / reduce.  No more can be hidden than what backward takes, so that the faster side may
  hide less.
- sent: MB that a rank sends in a step, as the system counts them.  link: seconds in which the link carries them: no
  step of either side is shorter.
- reductions: of an update by the gradients of four batches, by the bytes that it sends: 1 where these are reduced once.

Needs root; see benchmarks/hosts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.hosts import Hosts, missing
from benchmarks.peers.table import PEERS
from pydtconv.cli.processes import network_text
from pydtconv.simulation import Network

Row = dict[str, object]
SIDES = {"ours": "ours", "ddp": "DDP"}


def measured(model: str, ranks: int, caps: list[float], options: argparse.Namespace) -> list[dict[str, Any]]:
    """What rank 0 of so many hosts prints: of each link."""
    chosen = {name: getattr(options, name) for name in ("batch", "turns", "seconds", "links", "half")}
    with Hosts(ranks, Network.parse(options.links[0])) as hosts:
        words = chosen | {"model": model, "address": hosts.addresses[0], "switch": hosts.links, "caps": caps}
        env = os.environ | {"GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1"}
        command = ["-m", "benchmarks.ddp_rank", json.dumps(words)]
        done = hosts.run(command, env, capture_output=True, check=False, cwd=Path(__file__).parents[1])
    if done.returncode:
        raise SystemExit(f"{model} on {ranks} hosts: status {done.returncode}\n{done.stderr[-3000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()[-len(options.links) :]]


def figures(found: dict[str, Any], images: int) -> Row:
    """See the columns above.  images: of a step of all ranks."""
    row: Row = {f"{label} images/s": images / found[side]["step s"] for side, label in SIDES.items()}
    row["ratio"] = found["ddp"]["step s"] / found["ours"]["step s"]
    for side, label in SIDES.items():
        each = found[side]
        row |= {f"{label} {name} s": each[f"{name} s"] for name in ("alone", "step", "reduce")}
        row[f"{label} hidden %"] = 100 * (1 - (each["step s"] - each["alone s"]) / each["reduce s"])
        row[f"{label} sent MB"] = each["step MB"]
        row[f"{label} reductions"] = each["update MB"] / each["step MB"]
    sent = max(found[side]["step MB"] for side in SIDES)
    return row | {
        "link s": 1e6 * sent * Network.parse(found["link"]).beta, "cap MiB": found["cap"], "peer": found["peer"]
    }  # fmt: skip


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ddp", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["vgg16", "resnet34"])
    parser.add_argument("--ranks", nargs="+", type=int, default=[2, 4])
    parser.add_argument(
        "--links", nargs="+", default=["1Gbps:100us", "100Mbps:100us"], type=network_text, help="bandwidth:latency"
    )
    parser.add_argument("--batch", type=int, default=32, help="32x32 images of a rank (default: 32)")
    parser.add_argument("--turns", type=int, default=5, help="turns of each side, at most (default: 5)")
    parser.add_argument("--seconds", type=float, default=10, help="in which turns begin, after two (default: 10)")
    parser.add_argument("--half", action="store_true", help="both sides send 16 bits: ours bfloat16, the peer float16")
    parser.add_argument("--name", default="ddp", help="of the files in benchmarks/results/")
    parser.add_argument(
        "--caps", nargs="+", type=float, default=[4.0, 25.0], help="MiB of the peer's buckets that are tried"
    )
    options = parser.parse_args()
    for name in ("ranks", "batch", "turns", "caps"):
        values = getattr(options, name)
        if min(values if isinstance(values, list) else [values]) < (2 if name == "ranks" else 1):
            parser.error(f"--{name}: expected {'2' if name == 'ranks' else '1'} or more, got {values}")
    return options


def main() -> None:
    options = parse()
    reason = missing() or (
        f"needs {' and '.join(absent)}" if (absent := PEERS["torch"].missing(sys.executable)) else None
    )
    if reason:
        raise SystemExit(f"benchmarks.ddp: {reason}")
    rows: list[Row] = []
    for model in options.models:
        caps = options.caps
        for ranks in sorted(options.ranks):
            images = options.batch * ranks
            for found in measured(model, ranks, caps, options):
                caps = [found["cap"]]
                row: Row = {
                    "model": model,
                    "ranks": ranks,
                    "link": found["link"],
                    "bits": 16 if options.half else 32,
                    "batch": images,
                }
                rows.append(row | figures(found, images))
                report.print_table(f"{model}, {ranks} ranks, {found['link']}; caps {found['tried']}", rows[-1:])
            print(report.write_csv(options.name, rows), flush=True)
    labels = [f"{row['model']}, {row['ranks']} ranks, {str(row['link']).split(':')[0]}" for row in rows]
    series = {f"{name} hidden": [float(str(row[f"{name} hidden %"])) for row in rows] for name in SIDES.values()}
    print(report.plot_bars(options.name, "share of the communication that is hidden", labels, series, "%"))


if __name__ == "__main__":
    main()
