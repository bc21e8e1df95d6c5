"""Convolution or dense + addition of what is there before it -> the same operator with that as its last input."""

from __future__ import annotations

import dataclasses

from pydtconv.graph.ir.graph import Graph
from pydtconv.graph.ir.rewriting import absorb, consumers, sole_consumer
from pydtconv.ops import Add


def fuse_addition(graph: Graph) -> None:
    """op(x, w, ...) + r -> op(x, w, ..., r), where r has the shape of the sum and is computed before.

    Of two operators that are added it is the later one that adds the other's result.
    """
    readers = consumers(graph)
    place = {node: index for index, node in enumerate(graph.nodes)}
    for node in list(graph.nodes):
        if not node.op.takes_residual or node.op.residual or node.op.activation is not None:
            continue
        consumer = sole_consumer(graph, node, readers)
        if consumer is None or consumer.op != Add() or len(consumer.inputs) != 2:
            continue
        (residual,) = (tensor for tensor in consumer.inputs if tensor is not node.outputs[0])
        before = residual.node is None or place[residual.node] < place[node]
        if before and residual.spec == node.outputs[0].spec and len(residual.shape) > 1:
            op = dataclasses.replace(node.op, residual=True)  # type: ignore[type-var]
            absorb(graph, node, consumer, op, (*node.inputs, residual))
