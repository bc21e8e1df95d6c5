"""Convolution or dense + bias -> the same operator with a third input."""

from __future__ import annotations

from pydtconv.graph.ir.graph import Graph
from pydtconv.graph.ir.rewriting import absorb, consumers, sole_consumer
from pydtconv.ops import Bias


def fuse_bias(graph: Graph) -> None:
    """y = op(x, w); y + b -> op(x, w, b), where b is there before y."""
    readers = consumers(graph)
    place = {node: index for index, node in enumerate(graph.nodes)}
    for node in list(graph.nodes):
        if not node.op.takes_bias or len(node.inputs) != 2 or node.op.activation:
            continue
        consumer = sole_consumer(graph, node, readers)
        if consumer is None or not isinstance(consumer.op, Bias):
            continue
        source = consumer.inputs[1].node
        if source is not None and not (source.op.is_view and place[source] < place[node]):
            continue
        absorb(graph, node, consumer, node.op, (*node.inputs, consumer.inputs[1]))
