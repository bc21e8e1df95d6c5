"""What to recompute so that a step fits in a memory limit: choices of tensors, the cheapest first.

The nodes are cut into segments where little passes from one to the next.  What passes is kept, all else that a segment
computes is recomputed when backward comes to it (T. Chen et al., "Training Deep Nets with Sublinear Memory Cost",
2016).  Shorter segments keep more and need less at a time; a choice may also leave the segments alone that gain the
least bytes for the time that it takes to run them again.

Before that come single tensors that take little arithmetic, as the results of depthwise convolutions do: often most of
a mobile network's bytes are theirs, and with images that are never stored (graph.elided) they are all that is computed
again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from pydtconv import config
from pydtconv.conv import calibrated
from pydtconv.graph.ir.graph import Graph, Node, Tensor, base_of, replay_flops
from pydtconv.graph.ir.rewriting import updated_state
from pydtconv.graph.schedule.rematerialization import (
    FLOPS_A_BYTE,
    SMALLEST,
    Rematerialization,
    cheap_tensors,
    recomputable,
    sources_of,
)

#: sizes of segments, as shares of all bytes kept; shares of the segments that are recomputed
SEGMENTS = (0.5, 0.25, 0.125, 0.06, 0.03, 0.015)
SHARES = (0.2, 0.4, 0.7, 1.0)


def seconds_of(node: Node, elided: Mapping[Tensor, Tensor]) -> float:
    """Estimated time of computing a node's output again, on one core; elided: as for `sources_of`."""
    moved = sum(tensor.spec.nbytes for tensor in (*sources_of(node, elided), *node.outputs))
    machine = calibrated.machine()
    return config.num_threads() * (moved / machine.bytes + replay_flops(node) / machine.flops)


def choices(graph: Graph, readers: Mapping[Tensor, int]) -> Iterator[Collection[Tensor]]:
    """Collections of tensors to recompute, by the estimated time that it takes; the first are the cheap ones.

    readers: see `Rematerialization`.
    """
    cheap = cheap_tensors(graph, readers)
    kept = {base_of(tensor) for tensor in readers}
    found: dict[frozenset[Tensor], float] = {}
    for size in SEGMENTS:
        segments = _segments(graph, kept, size)
        segments.sort(key=lambda each: _seconds(each, graph.elided) / max(sum(t.spec.nbytes for t in each & kept), 1))
        for share in SHARES:
            some = segments[: math.ceil(share * len(segments))]
            chosen = cheap.union(*some) - _passing(graph, some)
            needed = frozenset(Rematerialization(graph, chosen, readers).needed)
            found[needed] = _seconds(needed, graph.elided)
    yield cheap
    yield from sorted(found, key=found.__getitem__)


def little_arithmetic(graph: Graph, readers: Mapping[Tensor, int]) -> list[set[Tensor]]:
    """Collections of tensors to recompute, each with one more than the last, beside the cheap ones.

    That is the one which takes the least time for its bytes, of those that at most FLOPS_A_BYTE operations for each
    byte make of what is kept.
    """
    found = cheap_tensors(graph, readers)
    kept, state = {base_of(tensor) for tensor in readers}, updated_state(graph)
    single = [node for node in graph.nodes if _takes_little(graph, node, kept, found, state)]
    single.sort(key=lambda node: seconds_of(node, graph.elided) / node.outputs[0].spec.nbytes)
    return [{*found, *(node.outputs[0] for node in single[: i + 1])} for i in range(len(single))]


def _takes_little(
    graph: Graph, node: Node, kept: Collection[Tensor], cheap: Collection[Tensor], state: Collection[Tensor]
) -> bool:
    out = node.outputs[0]
    if out in cheap or out not in kept or out.spec.nbytes < SMALLEST or not recomputable(graph, out, state):
        return False
    known = all(tensor in kept or tensor in cheap or tensor.node is None for tensor in sources_of(node, graph.elided))
    return known and 0 < replay_flops(node) <= FLOPS_A_BYTE * out.spec.nbytes


def _seconds(tensors: Collection[Tensor], elided: Mapping[Tensor, Tensor]) -> float:
    return sum(seconds_of(tensor.node, elided) for tensor in tensors if tensor.node is not None)


def _segments(graph: Graph, kept: Collection[Tensor], size: float) -> list[set[Tensor]]:
    """What each segment computes and can compute again; size: the bytes of it that are kept, as a share of all."""
    passing, end = _passing_bytes(graph), len(graph.nodes)
    sizes = [sum(tensor.spec.nbytes for tensor in node.outputs if tensor in kept) for node in graph.nodes]
    before = list(itertools.accumulate(sizes, initial=0))
    segments: list[set[Tensor]] = []
    state = updated_state(graph)
    start = 0
    while start < end:
        stop = next((i for i in range(start + 1, end) if before[i] - before[start] > size * before[-1]), end)
        if stop < end:
            half = (before[stop] + before[start]) / 2
            window = [i for i in range(start + 1, stop + 1) if before[i] >= half]
            stop = min(window, key=lambda i: (passing[i], -i))
        outputs = [node.outputs[0] for node in graph.nodes[start:stop]]
        segments.append({tensor for tensor in outputs if recomputable(graph, tensor, state)})
        start = stop
    return segments


def _passing_bytes(graph: Graph) -> list[int]:
    """For each position between nodes, the bytes that nodes before it compute and nodes behind it read."""
    produced = {tensor: i for i, node in enumerate(graph.nodes) for tensor in node.outputs}
    last = {tensor: i for i, node in enumerate(graph.nodes) for tensor in map(base_of, node.inputs)}
    change = [0] * (len(graph.nodes) + 2)
    for tensor, i in last.items():
        if tensor in produced:
            change[produced[tensor] + 1] += tensor.spec.nbytes
            change[i + 1] -= tensor.spec.nbytes
    return list(itertools.accumulate(change))


def _passing(graph: Graph, segments: Sequence[Collection[Tensor]]) -> set[Tensor]:
    """What a segment computes and a node of another one reads."""
    segment_of = {tensor: i for i, segment in enumerate(segments) for tensor in segment}
    passing: set[Tensor] = set()
    for node in graph.nodes:
        own = segment_of.get(node.outputs[0])
        passing.update(tensor for tensor in map(base_of, node.inputs) if segment_of.get(tensor, own) != own)
    return passing
