"""Sums of batch normalization's backward that cost no sweep: gathered by the convolution that completes its dy.

Backward of batch normalization begins with two sums over its dy.  Where the last operator that contributes to dy is a
convolution, its backward_data finds them in each block of dy while that is in cache, and dy is read from memory once
less.
"""

from __future__ import annotations

from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.memory.layout import joins_channels
from pydtconv.graph.schedule.gradients import Needed
from pydtconv.ops.normalization import BatchNorm


def find_gathering(graph: Graph, needed: Needed) -> dict[Node, Node]:
    """Nodes whose backward gathers sums from the gradient of their input 0, and the batch normalization they are for.

    It depends on the graph alone, not on what is stored or computed again: so neither changes the bits of a result.
    """
    first: dict[Tensor, Node] = {}  # the reader whose backward runs last
    for node in needed.nodes:
        for tensor, wanted in zip(node.inputs, needed.of_inputs(node), strict=True):
            if wanted:
                first.setdefault(tensor, node)
    found: dict[Node, Node] = {}
    for node in needed.nodes:
        reader = first.get(node.outputs[0])
        if reader is not None and _wants(node) and _gathers(reader, node.outputs[0]):
            found[reader] = node
    return found


def _wants(node: Node) -> bool:
    op = node.op
    return isinstance(op, BatchNorm) and not op.frozen and op.activation in (None, "linear", "relu")


def _gathers(reader: Node, tensor: Tensor) -> bool:
    if joins_channels(reader) or reader.op.is_view or reader.inputs[0] is not tensor or reader.inputs.count(tensor) > 1:
        return False
    return reader.kernel.gathers_reductions(*(each.spec for each in reader.inputs))
