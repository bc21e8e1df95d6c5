"""The pass that splits the first part of a network into patches (Split-CNN; see patch_borders.py).

Patches run one after the other through all split operators, forward and backward, so that their tensors and workspaces
take each other's place; then they are rejoined.  Windows at the border of a patch see zeros there, as at the border of
an image.  Operators that are no windows pass through; branches share the scheme of the tensor that they read.

Batch normalization takes the statistics of each patch by itself, and the moving ones follow the mean over all patches:
each patch moves them by the share that makes a step of all patches one of the whole.  With `whole_statistics` the
patches are put together before it and cut again behind it, so that patches take turns only between two of them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.passes.patch_borders import Settings, needed
from pydtconv.graph.passes.patch_layout import (
    AXES,
    WINDOWS,
    Intervals,
    Layout,
    Region,
    images_of,
    joins,
    too_many,
    window_of,
)
from pydtconv.ops.base import Op
from pydtconv.ops.normalization import BatchNorm
from pydtconv.ops.resize import Pad
from pydtconv.ops.shape import Concatenate, Slice

#: tensors of the whole network, and what a patch has of them
Parts = dict[Tensor, Tensor]


def split_patches(graph: Graph) -> None:
    """Splits what `graph.split` says.  Raises ValueError for more patches than an image has elements."""
    split: Settings | None = graph.split
    assert split is not None
    region = Region.of(graph, split)
    if region is None or split.patches == 1:
        return
    layout = Layout(region, split, graph.split_draw)
    last = graph.nodes.index(region.nodes[-1])
    before = [node for node in graph.nodes[:last] if node not in region.members]
    after = graph.nodes[last + 1 :]
    graph.nodes = before
    rows, columns = map(range, split.splits)
    patches: dict[tuple[int, int], Parts] = {patch: {} for patch in itertools.product(rows, columns)}
    for nodes, joining in _turns(region, split):
        for patch, parts in patches.items():
            _compute(graph, nodes, layout, patch, parts, region.start)
        if joining is not None:
            _join_and_cut(graph, joining, layout, patches)
    whole = _whole(graph, region.end, layout, patches)
    graph.nodes += after
    for node in after:
        node.inputs = tuple(whole if tensor is region.end else tensor for tensor in node.inputs)
    graph.outputs = {name: whole if tensor is region.end else tensor for name, tensor in graph.outputs.items()}


def _turns(region: Region, split: Settings) -> Iterator[tuple[list[Node], Node | None]]:
    """The operators that a patch runs in its turn, and the one that then runs on the whole image."""
    nodes: list[Node] = []
    for node in region.nodes:
        if joins(node, split):
            yield nodes, node
            nodes = []
        else:
            nodes.append(node)
    yield nodes, None


def _compute(
    graph: Graph, nodes: Collection[Node], layout: Layout, patch: tuple[int, int], parts: Parts, start: Tensor
) -> None:
    """Adds these operators of one patch."""
    for node in nodes:
        if start not in parts and start in node.inputs:
            whole = tuple((0, extent or 0) for extent in start.shape[1:3])
            parts[start] = _cut(graph, start, (whole[0], whole[1]), layout.intervals(start, patch), node)
        made = layout.intervals(node.outputs[0], patch)
        op, read = patched(node, made, {t: layout.intervals(t, patch) for t in images_of(node)}, layout.split)
        inputs = list(node.inputs)
        for i, tensor in enumerate(inputs):
            if tensor in read:
                inputs[i] = _cut(graph, parts[tensor], layout.intervals(tensor, patch), read[tensor], node)
        parts[node.outputs[0]] = _add(graph, op, inputs, node.outputs[0])


def _join_and_cut(graph: Graph, node: Node, layout: Layout, patches: Mapping[tuple[int, int], Parts]) -> None:
    """Adds an operator on the whole image between the patches that it reads and those of its result."""
    out = node.outputs[0]
    joined = _whole(graph, node.inputs[0], layout, patches)
    y = _add(graph, node.op, (joined, *node.inputs[1:]), out)
    extents = tuple((0, extent or 0) for extent in out.shape[1:3])
    for patch, parts in patches.items():
        parts[out] = _cut(graph, y, (extents[0], extents[1]), layout.intervals(out, patch), node)


def _whole(graph: Graph, tensor: Tensor, layout: Layout, patches: Mapping[tuple[int, int], Parts]) -> Tensor:
    """A tensor from what each patch has of it."""
    assert tensor.node is not None
    rows: dict[int, list[Tensor]] = {}
    for patch, parts in patches.items():
        held, own = layout.intervals(tensor, patch), layout.own(tensor, patch)
        rows.setdefault(patch[0], []).append(_cut(graph, parts[tensor], held, own, tensor.node))
    joined = [each[0] if len(each) == 1 else _add(graph, Concatenate(2), each, tensor) for each in rows.values()]
    return joined[0] if len(joined) == 1 else _add(graph, Concatenate(1), joined, tensor)


def patched(
    node: Node, made: Intervals, held: Mapping[Tensor, Intervals], split: Settings
) -> tuple[Op, dict[Tensor, Intervals]]:
    """The operator for these elements of the output, and what it reads of the inputs of which a patch holds `held`."""
    op: Any = node.op
    if not isinstance(op, (*WINDOWS, Pad)):
        if isinstance(op, BatchNorm) and not op.frozen:
            op = dataclasses.replace(op, momentum=op.momentum ** (1 / split.patches))
        return op, dict.fromkeys(held, made)
    (tensor,) = held
    padding, read = [], []
    for axis in AXES:
        window = window_of(node, axis)
        assert window is not None
        low, high = needed(window, made[axis - 1])
        first, last = held[tensor][axis - 1]
        begin, end = max(low, first), min(high, last)
        if begin >= end:
            raise too_many(node)
        if 0 < last - high < window.stride:
            end = last  # what windows leave over needs not be cut off
        padding.append((begin - low, max(high - last, 0)))
        read.append((begin, end))
    if isinstance(op, Pad):
        op = dataclasses.replace(op, padding=((0, 0), *padding, op.padding[-1]))
    else:
        op = dataclasses.replace(op, padding=(padding[0], padding[1]))
    return op, {tensor: (read[0], read[1])}


def _cut(graph: Graph, tensor: Tensor, held: Intervals, read: Intervals, node: Node) -> Tensor:
    """The part that is read of a tensor that holds these elements."""
    if held == read:
        return tensor
    start = tuple(want[0] - have[0] for have, want in zip(held, read, strict=True))
    stop = tuple(want[1] - have[0] for have, want in zip(held, read, strict=True))
    return _add(graph, Slice((0, *start, 0), (None, *stop, None)), [tensor], node.outputs[0])


def _add(graph: Graph, op: Op, inputs: Collection[Tensor], like: Tensor) -> Tensor:
    """A new node, named after the layer of `like`."""
    assert like.node is not None
    node = Node(graph, op, tuple(inputs), like.node.scope)
    graph.nodes.append(node)
    return node.outputs[0]
