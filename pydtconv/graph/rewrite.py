"""Rewriting of a traced graph: dead nodes go, patterns become fused operators.

Patterns, each a node with a single consumer:
 - convolution or dense + bias -> the same operator with a third input;
 - anything with an `activation` attribute + activation -> the activation as that attribute;
 - softmax or sigmoid + cross-entropy of probabilities -> one stable operator with both results;
 - transpose + its inverse -> nothing; a transpose sinks below an element-wise operator to meet its inverse.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from pydtconv.graph.graph import Graph, Node, Tensor
from pydtconv.ops.activation import FUSABLE, Activation, Bias


def rewrite(graph: Graph, variant: str | None = None) -> None:
    """Applies all rewritings to the graph, in place."""
    remove_dead_nodes(graph)
    for fuse in (fuse_bias, fuse_activation):
        fuse(graph)


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


def absorb(graph: Graph, node: Node, consumer: Node, op: Any, inputs: tuple[Tensor, ...]) -> None:
    """Makes `node` compute what `consumer` did: it gets the op, the inputs and the consumer's output."""
    node.op, node.inputs, node.outputs = op, inputs, consumer.outputs
    for tensor in node.outputs:
        tensor.node = node
    graph.nodes.remove(consumer)


def sole_consumer(graph: Graph, node: Node, readers: dict[Tensor, list[Node]]) -> Node | None:
    """The only node that reads the only output of `node`, if that output is no result of the graph."""
    if len(node.outputs) != 1 or node.outputs[0] in results(graph):
        return None
    found = readers.get(node.outputs[0], [])
    return found[0] if len(found) == 1 else None


def fuse_bias(graph: Graph) -> None:
    """y = op(x, w); y + b -> op(x, w, b)."""
    readers = consumers(graph)
    for node in list(graph.nodes):
        if not getattr(node.op, "takes_bias", False) or len(node.inputs) != 2 or node.op.activation:  # type: ignore[attr-defined]
            continue
        consumer = sole_consumer(graph, node, readers)
        if consumer is None or not isinstance(consumer.op, Bias) or consumer.inputs[1].node is not None:
            continue
        absorb(graph, node, consumer, node.op, (*node.inputs, consumer.inputs[1]))


def fuse_activation(graph: Graph) -> None:
    """act(op(...)) -> op(..., activation=act) for activations whose derivative follows from their output."""
    readers = consumers(graph)
    for node in list(graph.nodes):
        if getattr(node.op, "activation", "absent") is not None:
            continue
        consumer = sole_consumer(graph, node, readers)
        if consumer is None or not isinstance(consumer.op, Activation) or consumer.op.kind not in FUSABLE:
            continue
        op = dataclasses.replace(node.op, activation=consumer.op.kind, alpha=consumer.op.alpha)  # type: ignore[type-var, call-arg]
        absorb(graph, node, consumer, op, node.inputs)
