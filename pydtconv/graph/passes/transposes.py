"""Transposes meet and cancel: those of a channels_first model sink below element-wise operators until they do.

f(transpose(x), ...) -> transpose(f(x, ...)) for element-wise f; transpose(transpose(x)) -> one transpose, or x.
"""

from __future__ import annotations

import dataclasses

from pydtconv.graph.ir.graph import Graph, Node
from pydtconv.graph.ir.rewriting import replace_reads
from pydtconv.graph.passes.dead_nodes import remove_dead_nodes
from pydtconv.ops import Activation, Add, Maximum, Minimum, Multiply, Op, Subtract
from pydtconv.ops.random import Dropout
from pydtconv.ops.shape import Concatenate, Transpose


def sink_transposes(graph: Graph) -> None:
    """f(transpose(x), ...) -> transpose(f(x, ...)) for element-wise f; then transposes of transposes are joined."""
    if not any(isinstance(node.op, Transpose) for node in graph.nodes):
        return
    while any(_join(graph, node) or _sink(graph, node) for node in list(graph.nodes)):
        remove_dead_nodes(graph)


def _sink(graph: Graph, node: Node) -> bool:
    """Exchanges an element-wise operator with the transposes of its inputs, where those are all the same."""
    orders = {_order(tensor.node) for tensor in node.inputs}
    if len(orders) != 1:
        return False
    (order,) = orders
    if order is None:
        return False
    op = _before_transpose(node, order)
    if op is None:
        return False
    sources = tuple(tensor.node.inputs[0] for tensor in node.inputs if tensor.node)
    inner = Node(graph, op, sources, node.scope)
    outer = Node(graph, Transpose(order), inner.outputs, node.scope)
    replace_reads(graph, node.outputs[0], outer.outputs[0])
    position = graph.nodes.index(node)
    graph.nodes[position : position + 1] = [inner, outer]
    return True


def _order(node: Node | None) -> tuple[int, ...] | None:
    """The axes of a transpose, None for any other node."""
    if node is None or not isinstance(node.op, Transpose):
        return None
    return node.op.order(len(node.outputs[0].shape))


def _before_transpose(node: Node, order: tuple[int, ...]) -> Op | None:
    """The operator that does on untransposed inputs what the node's does on transposed ones, if there is one."""
    if isinstance(node.op, Activation) or (isinstance(node.op, Dropout) and node.op.noise_shape is None):
        return node.op
    if isinstance(node.op, (Add, Subtract, Multiply, Maximum, Minimum)):
        return node.op if len({tensor.spec for tensor in node.inputs}) == 1 else None
    if isinstance(node.op, Concatenate):
        return dataclasses.replace(node.op, axis=order[node.op.axis % len(order)])
    return None


def _join(graph: Graph, node: Node) -> bool:
    """transpose(transpose(x)) -> one transpose, or x."""
    first = node.inputs[0].node if node.inputs else None
    outer, inner = _order(node), _order(first)
    if outer is None or inner is None or first is None:
        return False
    axes = tuple(inner[axis] for axis in outer)
    if axes == tuple(range(len(axes))):
        replace_reads(graph, node.outputs[0], first.inputs[0])
        graph.nodes.remove(node)
    else:
        node.op, node.inputs = Transpose(axes), first.inputs
    return True
