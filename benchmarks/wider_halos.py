"""What one wider halo for two convolutions would gain, by the cost model: `python -m benchmarks.wider_halos`.

Where a convolution B follows a convolution A, each behind an exchange of halos, one exchange before A could bring all
that both read: A computes the rows of B's halo twice, on both sides of a cut, and B's exchange is saved, in forward and
in backward.  Of each such pair in the plan of a rank:

- saved: what a rank waits for B's exchanges now: latency and bytes at the link's rate, less what runs beside them.
- cost: A's passes for the rows of B's halo, and the larger messages of A's exchange.

A normalization between A and B is no pair: its statistics are exchanged there, and rows that two ranks compute would
count twice.  waiting: all that the rank waits for halos.  gain: the sum of saved less cost over the pairs where that is
above 0; % of the step.  Nothing runs: steps take what the cost model says of one thread (`pydtconv tune --calibrate`
fits it to a machine), as in `pydtconv simulate --mesh`.  A CSV file goes to benchmarks/results/.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks import report
from benchmarks.networks import Case, compiled

CASES = ("vgg16 32 1", "vgg16 32 64", "vgg16 224 1", "unet 64 1", "unet 64 16", "unet 256 1", "unet 1024 1")
LINKS = ("100Gbps:1.5us", "10Gbps:20us", "1Gbps:100us")
RANKS = 4


class Node(NamedTuple):
    """Seconds of all steps of a node, and of these what a rank waits for messages."""

    seconds: float
    waiting: float


def times_of(plan: Any, one: Any, link: Any) -> dict[Any, Node]:
    """Of each node of a rank's plan."""
    from pydtconv.simulation.meshes import waiting

    found: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
    seconds = one.seconds(plan.steps)
    for i, step in enumerate(plan.steps):
        found[step.node][0] += seconds[i]
        found[step.node][1] += waiting(plan.steps, seconds, i, link)
    return {node: Node(*each) for node, each in found.items()}


def pairs(plan: Any) -> Iterator[tuple[Any, Any, Any]]:
    """(exchange before A, A, exchange before B), where B reads what A gives."""
    from pydtconv.ops.exchange import Exchange

    for node in plan.graph.nodes:
        first = node.inputs[0].node if isinstance(node.op, Exchange) else None
        if first is None or not first.op.passes:
            continue
        before = first.inputs[0].node
        if before is not None and isinstance(before.op, Exchange):
            yield before, first, node


def gain(pair: tuple[Any, Any, Any], times: dict[Any, Node], link: Any) -> float:
    """Seconds of a step that one exchange for both saves; below 0 where it costs more."""
    before, first, second = pair
    own, read = (tensor.spec.size for tensor in (second.inputs[0], second.outputs[0]))
    more = read / own - 1
    larger = 2 * more * before.inputs[0].spec.nbytes * link.beta  # forward and backward
    return times[second].waiting - more * times[first].seconds - larger


def row(case: Case, network: str) -> dict[str, object]:
    """The rank in the middle of four that share each image along the height."""
    from pydtconv.simulation import Network
    from pydtconv.simulation.meshes import OneRank, as_rank

    link, model = Network.parse(network), compiled(case)
    whole = model.plan(case.batch)
    with as_rank({"height": RANKS}, RANKS // 2):
        plan = model.plan(case.batch)
    times = times_of(plan, OneRank.by_cost_model(whole), link)
    step = sum(each.seconds + each.waiting for each in times.values())
    gains = [gain(pair, times, link) for pair in pairs(plan)]
    paying = [each for each in gains if each > 0]
    return {
        "network": case.network, "pixels": case.size, "batch": case.batch, "ranks": RANKS, "link": network,
        "step ms": 1e3 * step, "waiting %": 100 * sum(each.waiting for each in times.values()) / step,
        "pairs": len(gains), "paying": len(paying), "gain %": 100 * sum(paying) / step,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.wider_halos",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cases", nargs="+", default=CASES, help='such as "unet 256 1": network, pixels, images')
    parser.add_argument("--links", nargs="+", default=LINKS, help="bandwidth:latency between ranks")
    parser.add_argument("--name", default="wider_halos", help="of the file in benchmarks/results/")
    options = parser.parse_args()
    from pydtconv import config

    config.set_num_threads(1)
    rows = []
    for words in options.cases:
        name, size, batch = words.split()
        rows += [row(Case(name, int(size), int(batch)), link) for link in options.links]
        report.print_table("one exchange for two convolutions", rows[-len(options.links) :])
    print(report.write_csv(options.name, rows))


if __name__ == "__main__":
    main()
