"""Rewriting of a traced graph: dead nodes go."""

from __future__ import annotations

from pydtconv.graph.graph import Graph, Node, Tensor


def rewrite(graph: Graph, variant: str | None = None) -> None:
    """Applies all rewritings to the graph, in place."""
    remove_dead_nodes(graph)


def consumers(graph: Graph) -> dict[Tensor, list[Node]]:
    """Nodes that read each tensor, once per reading."""
    result: dict[Tensor, list[Node]] = {}
    for node in graph.nodes:
        for tensor in node.inputs:
            result.setdefault(tensor, []).append(node)
    return result


def results(graph: Graph) -> set[Tensor]:
    return {*graph.outputs.values(), *([graph.loss] if graph.loss is not None else [])}


def remove_dead_nodes(graph: Graph) -> None:
    """Drops nodes that no result depends on."""
    alive = results(graph)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(tensor in alive for tensor in node.outputs):
            alive.update(node.inputs)
            kept.append(node)
    graph.nodes = kept[::-1]
