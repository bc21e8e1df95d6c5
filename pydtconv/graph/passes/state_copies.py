"""State that is read, and changed before backward reads it again -> a copy, made where it was read.

A layer of a user's may multiply by the moving variance of a batch normalization that it applies afterwards: backward of
the product wants the variance of then.
"""

from __future__ import annotations

from pydtconv.graph.ir.graph import Graph, Node, base_of
from pydtconv.ops.activation import Activation


def copy_state(graph: Graph) -> None:
    """Lets operators whose backward reads such state read a copy of it."""
    last = {
        node.inputs[i]: place for place, node in enumerate(graph.nodes) for i in node.op.updates if i < len(node.inputs)
    }
    if not last:
        return
    nodes: list[Node] = []
    for place, node in enumerate(graph.nodes):
        kept = set(node.op.retains((True,) * len(node.inputs)).x) - set(node.op.updates)
        for i in sorted(kept):
            if last.get(base_of(node.inputs[i]), -1) > place:
                copy = Node(graph, Activation("linear"), (node.inputs[i],), node.scope)
                node.inputs = (*node.inputs[:i], copy.outputs[0], *node.inputs[i + 1 :])
                nodes.append(copy)
        nodes.append(node)
    graph.nodes = nodes
