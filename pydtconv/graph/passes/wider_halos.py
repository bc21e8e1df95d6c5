"""One wider halo for two convolutions that follow each other, where that costs less than the message it saves.

A convolution B reads a halo of what a convolution A gives, and A reads one of x.  With a halo of x for both, A computes
the outputs that B reads beyond this process's part by itself: they are computed twice, on both sides of a cut, and B's
exchange is gone.  In backward each process has its share of their gradients.  All that A gives back is linear in them,
so that the sums over processes are right: those of the filters, and those that the halo of x takes home.

What it costs and saves follows from the boxes of all processes, which all of them know: so all decide alike.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from pydtconv.dtypes import itemsize
from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.ir.rewriting import consumers, replace_reads, results
from pydtconv.ops.base import Spec
from pydtconv.ops.convolution import Conv, DepthwiseConv
from pydtconv.ops.exchange import Exchange
from pydtconv.ops.layout import Box, any_empty, window_padding, window_reads
from pydtconv.ops.pooling import WindowPool
from pydtconv.support.network import Network

#: operations a second of a process that convolves; the same in all, who must decide alike
RATE = 1e11


def widen_halos(graph: Graph) -> None:
    """Joins exchanges of halos, the last ones first, so that three convolutions and more may share one."""
    for second in reversed(list(graph.nodes)):
        pair = _before(graph, second)
        if pair is None:
            continue
        first, node = pair
        found = _widened(first.op, node, second.op)
        if found is not None and _gain(graph, first, node, second, found[0]) > 0:
            _join(graph, first, node, second, *found)


def _before(graph: Graph, second: Node) -> tuple[Node, Node] | None:
    """The exchange and the convolution that come before an exchange, where nobody else reads what they give."""
    readers, ends = consumers(graph), results(graph)
    if not _brings_halos(second.op) or not all(_reads_windows(each) for each in readers.get(second.outputs[0], ())):
        return None
    node = second.inputs[0].node
    if node is None or not isinstance(node.op, (Conv, DepthwiseConv)) or not isinstance(node.op.padding, tuple):
        return None
    op: Any = node.op
    first = node.inputs[0].node
    if len(node.outputs) > 1 or getattr(op, "residual", False) or first is None or not _brings_halos(first.op):
        return None
    alone = readers[node.outputs[0]] == [second] and readers[first.outputs[0]] == [node]
    if not alone or ends & {second.outputs[0], node.outputs[0], first.outputs[0]}:
        return None
    one: Any = first.op
    other: Any = second.op
    return (first, node) if one.axes == other.axes and len(one.held) == len(other.held) else None


def _brings_halos(op: Any) -> bool:
    """Whether every process reads what it holds, and perhaps more."""
    if not isinstance(op, Exchange) or op.packed:
        return False
    pairs = (pair for boxes in zip(op.held, op.need, strict=True) for pair in zip(*boxes, strict=True))
    return all(need[0] <= held[0] and held[1] <= need[1] for held, need in pairs)


def _reads_windows(node: Node) -> bool:
    return bool(node.op.passes) or isinstance(node.op, WindowPool)


def _widened(first: Any, node: Node, second: Any) -> tuple[tuple[Box, ...], tuple[tuple[int, int], ...]] | None:
    """What each process reads of x so that it has what `second` would bring, and the convolution's padding here."""
    op: Any = node.op
    specs = [tensor.spec for tensor in node.inputs]
    need: list[list[tuple[int, int]]] = [[] for _ in first.held]
    padding = list(op.padding)
    here = first.index
    for place, axis in enumerate(first.axes):
        local = op.window(axis, *specs)
        assert local is not None
        # the window counts padding from what this process reads; of the whole image it begins elsewhere
        start, read = second.held[here][place][0], first.need[here][place][0]
        walk = dataclasses.replace(local, before=local.before + start * local.stride - read)
        extent = max(box[place][1] for box in first.held)
        for process, (held, wanted) in enumerate(zip(second.held, second.need, strict=True)):
            if window_reads(walk, held[place], extent) != first.need[process][place]:
                return None  # not the halo of this convolution alone
            need[process].append(window_reads(walk, wanted[place], extent))
        padding[axis - 1] = window_padding(walk, second.need[here][place], need[here][place])
    if any(any_empty(tuple(box)) for box in need) or min(map(min, padding)) < 0:
        return None
    return tuple(map(tuple, need)), tuple(padding)


def _gain(graph: Graph, first: Node, node: Node, second: Node, need: Sequence[Box]) -> float:
    """Seconds of a step that are saved; below 0 where it costs more."""
    assert graph.partition is not None
    network: Network | None = graph.partition.network
    assert network is not None
    one: Any = first.op
    other: Any = second.op
    x, y = first.inputs[0].spec, node.outputs[0].spec
    both, passes = (2, 3) if graph.loss is not None else (1, 1)  # messages and passes, with backward

    def pixels(spec: Spec, box: Box) -> int:
        """Of all images in a box of the axes that are cut."""
        extents = dict(zip(one.axes, (stop - start for start, stop in box), strict=True))
        return math.prod(extents.get(axis, extent or 1) for axis, extent in enumerate(spec.shape[:-1]))

    def most(spec: Spec, wide: Sequence[Box], narrow: Sequence[Box]) -> int:
        return max(pixels(spec, a) - pixels(spec, b) for a, b in zip(wide, narrow, strict=True))

    def message(spec: Spec, count: int) -> float:
        return network.beta * count * (spec.shape[-1] or 1) * itemsize(spec.dtype)

    computing = passes * most(y, other.need, other.held) * _operations(node) / RATE
    larger = both * message(x, most(x, need, one.need))
    own = min(pixels(y, box) for box in other.held)
    beside = 0.0
    if graph.partition.overlaps and own >= graph.thresholds.halo_pixels:
        readers = consumers(graph).get(second.outputs[0], [])
        beside = min((_operations(each) / _shrinks(each) for each in readers), default=0.0) * own / RATE
    waiting = max(network.alpha + message(y, most(y, other.need, other.held)) - beside, 0.0)
    return both * waiting - computing - larger


def _operations(node: Node) -> float:
    """Of a convolution for each pixel of its output; 0 for others."""
    return 2.0 * math.prod(n or 1 for n in node.inputs[1].shape) if node.op.passes else 0.0


def _shrinks(node: Node) -> int:
    """Pixels that a window operator reads for each that it gives."""
    specs = [tensor.spec for tensor in node.inputs]
    windows = (node.op.window(axis, *specs) for axis in range(1, len(specs[0].shape) - 1))
    return math.prod(window.stride for window in windows if window is not None and not window.transposed)


def _join(
    graph: Graph, first: Node, node: Node, second: Node, need: tuple[Box, ...], padding: tuple[tuple[int, int], ...]
) -> None:
    _give(graph, first, dataclasses.replace(first.op, need=need))  # type: ignore[type-var]
    node.inputs = (first.outputs[0], *node.inputs[1:])
    _give(graph, node, dataclasses.replace(node.op, padding=padding))  # type: ignore[type-var]
    replace_reads(graph, second.outputs[0], node.outputs[0])
    graph.nodes.remove(second)


def _give(graph: Graph, node: Node, op: Any) -> None:
    """Another operator, and an output of what it gives then."""
    spec = op.infer(*(tensor.spec for tensor in node.inputs))
    node.op, node.outputs = op, (Tensor(graph, spec, node.outputs[0].name, node),)
