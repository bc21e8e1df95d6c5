"""Rewriting of a traced graph: dead nodes go, patterns become fused operators.

Patterns, each a node with a single consumer:
 - zeros around an image + convolution without padding -> a convolution with padding;
 - convolution or dense + bias -> the same operator with a third input;
 - convolution + addition of an image that is there before it -> a convolution with that image as its last input;
 - anything with an `activation` attribute + activation -> the activation as that attribute;
 - ReLU + maximum pooling -> pooling + ReLU, when gradients are wanted: the larger of the two results is not kept then;
 - batch normalization of what convolutions compute: these gather the statistics (shared_moments.py);
 - softmax or sigmoid + cross-entropy of probabilities -> one stable operator with both results;
 - transpose + transpose -> one, or nothing where they cancel; before that, transposes sink below element-wise
   operators, so that those of a channels_first model meet.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from pydtconv.graph.ir.graph import Graph, Node, Tensor
from pydtconv.graph.passes.shared_moments import share_moments
from pydtconv.ops import FUSABLE, Activation, Add, Bias, Maximum, Minimum, Multiply, Op, Subtract
from pydtconv.ops.convolution import Conv, DepthwiseConv
from pydtconv.ops.cross_entropy import CrossEntropy
from pydtconv.ops.pooling import MaxPool
from pydtconv.ops.random import Dropout
from pydtconv.ops.resize import Pad
from pydtconv.ops.shape import Concatenate, Transpose
from pydtconv.ops.softmax import Softmax


def rewrite(graph: Graph) -> None:
    """Applies all rewritings to the graph, in place."""
    remove_dead_nodes(graph)
    sink_transposes(graph)
    fuse_padding(graph)
    fuse_bias(graph)
    fuse_addition(graph)
    fuse_activation(graph)
    if graph.loss is not None:
        pool_before_relu(graph)
    fuse_loss(graph)
    if graph.training:
        share_moments(graph)


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


def replace_reads(graph: Graph, old: Tensor, new: Tensor) -> None:
    """Makes every reader of `old` read `new`; a result of the graph keeps its name."""
    for node in graph.nodes:
        if old in node.inputs:
            node.inputs = tuple(new if tensor is old else tensor for tensor in node.inputs)
    graph.outputs = {name: new if tensor is old else tensor for name, tensor in graph.outputs.items()}
    if graph.loss is old:
        graph.loss = new


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


def fuse_padding(graph: Graph) -> None:
    """conv(pad(x), w) -> conv(x, w, padding=...) where rows and columns of zeros are added."""
    readers = consumers(graph)
    for node in list(graph.nodes):
        if not isinstance(node.op, Pad) or node.op.mode != "constant" or node.op.value != 0:
            continue
        consumer = sole_consumer(graph, node, readers)
        if consumer is None or not isinstance(consumer.op, (Conv, DepthwiseConv)) or consumer.op.padding != "valid":
            continue
        batch, *sides, channels = node.op.padding
        if len(sides) != 2 or any(batch + channels) or consumer.inputs[0] is not node.outputs[0]:
            continue
        consumer.op = dataclasses.replace(consumer.op, padding=tuple(sides))
        consumer.inputs = (node.inputs[0], *consumer.inputs[1:])
        graph.nodes.remove(node)


def fuse_bias(graph: Graph) -> None:
    """y = op(x, w); y + b -> op(x, w, b)."""
    readers = consumers(graph)
    for node in list(graph.nodes):
        if not node.op.takes_bias or len(node.inputs) != 2 or node.op.activation:
            continue
        consumer = sole_consumer(graph, node, readers)
        if consumer is None or not isinstance(consumer.op, Bias) or consumer.inputs[1].node is not None:
            continue
        absorb(graph, node, consumer, node.op, (*node.inputs, consumer.inputs[1]))


def fuse_addition(graph: Graph) -> None:
    """conv(x, w, ...) + r -> conv(x, w, ..., r), where r has the shape of the sum and is computed before.

    Of two convolutions that are added it is the later one that adds the other's result.
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
        if before and residual.spec == node.outputs[0].spec:
            op = dataclasses.replace(node.op, residual=True)  # type: ignore[type-var]
            absorb(graph, node, consumer, op, (*node.inputs, residual))


def fuse_activation(graph: Graph) -> None:
    """act(op(...)) -> op(..., activation=act) for activations whose derivative follows from their output."""
    readers = consumers(graph)
    for node in list(graph.nodes):
        if not node.op.takes_activation or node.op.activation is not None:
            continue
        consumer = sole_consumer(graph, node, readers)
        if consumer is None or not isinstance(consumer.op, Activation) or consumer.op.kind not in FUSABLE:
            continue
        alpha = consumer.op.parameters[0]
        if consumer.op.kind == "leaky_relu" and alpha <= 0:  # the sign of x does not follow from y
            continue
        op = dataclasses.replace(node.op, activation=consumer.op.kind, alpha=alpha)  # type: ignore[type-var]
        absorb(graph, node, consumer, op, node.inputs)


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


def fuse_loss(graph: Graph) -> None:
    """Probabilities and the cross-entropy of them -> one operator that computes both from the scores."""
    for loss in list(graph.nodes):
        op = loss.op
        if not isinstance(op, CrossEntropy) or op.from_logits:
            continue
        q, y_true = loss.inputs[:2]
        node = q.node
        if node is None or y_true.node is not None:
            continue
        if op.kind == "binary":
            matches = node.op == Activation("sigmoid")
        else:
            axes = len(q.shape)
            matches = type(node.op) is Softmax and node.op.axis % axes == op.axis % axes
        if matches:
            (value,) = loss.outputs
            node.op, node.inputs, node.outputs = op.fused(), (*node.inputs, y_true), (q, value)
            value.node, value.index = node, 1
            graph.nodes.remove(loss)


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
