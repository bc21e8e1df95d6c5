"""Weak scaling of data-parallel training: `python -m benchmarks.weak_scaling` (the paper's figure 13).

A few ranks train on hosts of their own (benchmarks/hosts) with shaped links; more are predicted by `pydtconv simulate`
from the profile of one rank, from the network between two, and from how much steps and reductions differ.  Each rank
has the same images, one thread, and a part of a core's time by quota.  Where there are fewer ranks than the most real
ones, processes that train the same by themselves take the places of the others, so that each rank shares core, caches
and memory with as many at any number of ranks.  Columns:

- source: hosts, where the ranks were real, else simulate.  images/s of all ranks: over their mean step, or predicted.
- efficiency: images/s over as many times those of one rank.
- simulated images/s, measured / simulated: the prediction where ranks were real.
- lost to spread, link, waiting: parts of the predicted step (see `pydtconv simulate --help`).

Needs root; see benchmarks/hosts.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import hosts, report
from benchmarks.hosts import quotas
from benchmarks.links import told
from pydtconv.cli import neighbours
from pydtconv.cli.processes import network_text
from pydtconv.profiling import Profile
from pydtconv.simulation import Network, Prediction, Workload, predict

Row = dict[str, object]
BUCKET_BYTES = 4 << 20


class Training(NamedTuple):
    """What a rank trains: a network, the images of its step, how it is split, and the memory that it has."""

    model: str
    batch: int
    split: str | None = None
    memory_limit: int | None = None
    offload: str | None = None


def measured(training: Training, ranks: int, link: str, options: argparse.Namespace) -> dict[str, Any]:
    """What rank 0 of so many hosts prints, while others train where there are fewer than the most real ranks."""
    model = training.model
    places = max(options.ranks)
    words = [f"--{name}={value}" for name, value in (("model", model), ("batch", training.batch), ("image-size", 32))]
    with (
        quotas.Quotas(places, options.quota) as quota,
        hosts.Hosts(ranks, Network.parse(link)) as network,
        neighbours.busy([*words, "--threads=1"], places - ranks, 1) as others,
    ):
        for number, pid in enumerate(others, ranks):
            quotas.place(quota.paths[number], number, pid)
        groups = [str(path) for path in quota.paths]
        chosen = training._asdict() | {"steps": options.steps, "groups": groups, "bucket_bytes": BUCKET_BYTES}
        command = ["-m", "benchmarks.weak_rank", json.dumps(chosen)]
        env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = network.run(command, env, capture_output=True, check=False, cwd=Path(__file__).parents[1])
    if done.returncode:
        raise SystemExit(f"{model} on {ranks} hosts: status {done.returncode}\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(found: dict[int, dict[str, Any]], simulated: list[int], batch: int) -> list[Row]:
    """A row for each number of ranks.  found: what was measured, by ranks; among them are one and two."""
    profile = Profile.from_dict(found[1]["profile"])
    profile.reduction_seconds, profile.ranks = found[2]["reductions"], 2
    network, workload = Network(**found[2]["network"]), Workload([profile])

    def predicted(ranks: int) -> Prediction:
        return predict(workload, ranks, ranks * batch, network, bucket_bytes=BUCKET_BYTES)

    rows: list[Row] = []
    one, alone = batch / found[1]["seconds"], predicted(1).images_per_second
    for ranks in sorted({*found, *simulated}):
        prediction = predicted(ranks)
        rate = ranks * batch / found[ranks]["seconds"] if ranks in found else None
        rows.append({
            "ranks": ranks,
            "source": "simulate" if rate is None else "hosts",
            "images/s": prediction.images_per_second if rate is None else rate,
            "efficiency %": 100 * (prediction.images_per_second / alone if rate is None else rate / one) / ranks,
            "simulated images/s": prediction.images_per_second,
            "simulated efficiency %": 100 * prediction.images_per_second / alone / ranks,
            "measured / simulated": None if rate is None else rate / prediction.images_per_second,
            **{f"lost to {name} %": 100 * part for name, part in prediction.lost.items()},
            "network": told(network),
        })  # fmt: skip
    return rows


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.weak_scaling",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--models", nargs="+", default=["vgg16", "resnet34"])
    add_arguments(parser)
    return checked(parser, parser.parse_args())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of real and of predicted ranks."""
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2, 4], help="real ones, with 1 and 2 among them")
    parser.add_argument("--simulated", nargs="+", type=int, default=[8, 16, 32, 64], help="ranks that are predicted")
    parser.add_argument("--links", nargs="+", default=["1Gbps:100us"], type=network_text, help="bandwidth:latency")
    parser.add_argument("--batch", type=int, default=32, help="32x32 images of a rank (default: 32)")
    parser.add_argument("--steps", type=int, default=10, help="that are timed (default: 10)")
    parser.add_argument("--quota", type=float, default=0.4, help="of a core, for each rank (default: 0.4)")


def checked(parser: argparse.ArgumentParser, options: argparse.Namespace) -> argparse.Namespace:
    """The options; ends the program where they are not such as `add_arguments` says."""
    if not {1, 2} <= set(options.ranks) or min(*options.ranks, *options.simulated) < 1:
        parser.error(
            f"--ranks, --simulated: expected numbers from 1 on, and 1 and 2 in the former, got {options.ranks}"
        )
    if min(options.batch, options.steps) < 1 or not 0 < options.quota <= 1:
        parser.error("--batch, --steps, --quota: expected 1 or more, and a part of a core from above 0 to 1")
    return options


def check_hosts(name: str) -> None:
    """Ends the program where this machine cannot be several hosts."""
    reason = hosts.missing() or quotas.missing()
    if reason:
        raise SystemExit(f"benchmarks.{name}: {reason}")


def main() -> None:
    options = parse()
    check_hosts("weak_scaling")
    rows: list[Row] = []
    for model in options.models:
        for link in options.links:
            training = Training(model, options.batch)
            found = {ranks: measured(training, ranks, link, options) for ranks in sorted(set(options.ranks))}
            key = {"model": model, "link": link, "batch": options.batch, "quota": options.quota}
            rows += [key | row for row in table(found, options.simulated, options.batch)]
            here = [row for row in rows if (row["model"], row["link"]) == (model, link)]
            report.print_table(f"{model}, {link}", here)
            off = max(abs(1 - float(str(row["measured / simulated"]))) for row in here if row["source"] == "hosts")
            print(f"{model}: measured and simulated images/s differ by at most {off:.1%}")
            print(report.write_csv("weak_scaling", rows), flush=True)
    labels = [f"{row['model']}, {row['ranks']}" for row in rows]
    real = [float(str(row["efficiency %"])) if row["source"] == "hosts" else float("nan") for row in rows]
    series = {"hosts": real, "simulate": [float(str(row["simulated efficiency %"])) for row in rows]}
    print(report.plot_bars("weak_scaling", "weak scaling over ranks", labels, series, "efficiency, %"))


if __name__ == "__main__":
    main()
