"""ReLU + maximum pooling -> pooling + ReLU, when gradients are wanted: then the larger of the two is not kept."""

from __future__ import annotations

import dataclasses

from pydtconv.graph.ir.graph import Graph, Node
from pydtconv.graph.ir.rewriting import consumers, sole_consumer
from pydtconv.ops import Activation
from pydtconv.ops.pooling import MaxPool


def pool_before_relu(graph: Graph) -> None:
    """pool(relu(...)) -> relu(pool(...)) where backward reads relu's result: then it reads that of the pooling instead.

    Values and gradients are the same: the largest of a window has the largest ReLU, and where several have it because
    ReLU cuts them off, no gradient passes.
    """
    readers = consumers(graph)
    for node in list(graph.nodes):
        kind = node.op.kind if isinstance(node.op, Activation) else node.op.activation
        if kind not in ("relu", "relu6") or not node.op.retains((True,) * len(node.inputs)).y:
            continue
        pool = sole_consumer(graph, node, readers)
        if pool is None or not isinstance(pool.op, MaxPool):
            continue
        if isinstance(node.op, Activation):
            before = node.inputs[0]
            graph.nodes.remove(node)
        else:
            node.op = dataclasses.replace(node.op, activation=None)  # type: ignore[type-var]
            before = node.outputs[0]
        first = Node(graph, pool.op, (before,), pool.scope)
        graph.nodes.insert(graph.nodes.index(pool), first)
        pool.op, pool.inputs = Activation(kind), first.outputs
