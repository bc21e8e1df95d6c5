"""Drops nodes that no result depends on."""

from __future__ import annotations

from pydtconv.graph.ir.graph import Graph, Node
from pydtconv.graph.ir.rewriting import results


def remove_dead_nodes(graph: Graph) -> None:
    """Drops nodes that no result depends on, and that change no state either, such as moving averages."""
    alive = results(graph)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if (graph.training and node.op.updates) or any(tensor in alive for tensor in node.outputs):
            alive.update(node.inputs)
            kept.append(node)
    graph.nodes = kept[::-1]
