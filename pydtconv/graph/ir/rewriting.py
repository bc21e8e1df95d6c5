"""What passes do to graphs: who reads a tensor, and replacing of tensors and nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydtconv.graph.ir.graph import Graph, Node, Tensor


def consumers(graph: Graph) -> dict[Tensor, list[Node]]:
    """Nodes that read each tensor, once per reading."""
    result: dict[Tensor, list[Node]] = {}
    for node in graph.nodes:
        for tensor in node.inputs:
            result.setdefault(tensor, []).append(node)
    return result


def results(graph: Graph) -> set[Tensor]:
    ends = {*graph.outputs.values(), *graph.gradients.values()}
    return ends if graph.loss is None else ends | {graph.loss}


def updated_state(graph: Graph) -> set[Tensor]:
    """State that operators of the graph change in place, such as moving averages."""
    return {node.inputs[i] for node in graph.nodes for i in node.op.updates if i < len(node.inputs)}


def replace_reads(graph: Graph, old: Tensor, new: Tensor) -> None:
    """Makes every reader of `old` read `new`; a result of the graph keeps its name."""
    for node in graph.nodes:
        if old in node.inputs:
            node.inputs = tuple(new if tensor is old else tensor for tensor in node.inputs)
    replace_results(graph, {old: new})


def replace_results(graph: Graph, instead: Mapping[Tensor, Tensor]) -> None:
    """Makes results of the graph others, under their names."""
    graph.outputs = {name: instead.get(tensor, tensor) for name, tensor in graph.outputs.items()}
    if graph.loss is not None:
        graph.loss = instead.get(graph.loss, graph.loss)


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
