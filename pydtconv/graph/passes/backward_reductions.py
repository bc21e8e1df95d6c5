"""Fuses batch normalization's backward reductions into the operator that completes its dy.

Backward of batch normalization begins with two sums over its dy (they are the gradients of beta and gamma).  Where the
last operator that contributes to dy is a convolution or global pooling, it finds them in each block of dy while that is
in cache, and dy is read from memory once less.
"""

from __future__ import annotations

from pydtconv.conv.activations import OF_NORMALIZED
from pydtconv.graph.ir.graph import Graph, Node, Tensor, joins_channels
from pydtconv.graph.ir.required_gradients import RequiredGradients
from pydtconv.ops.normalization import BatchNorm


def fuse_backward_reductions(graph: Graph) -> None:
    """Finds nodes whose backward reduces the gradient of their input 0, and the batch normalization they do it for.

    It depends on the graph alone, not on what is stored or computed again: so neither changes the bits of a result.
    """
    graph.fused_reductions.clear()
    required = RequiredGradients(graph)
    first: dict[Tensor, Node] = {}  # the reader whose backward runs last
    for node in required.nodes:
        for tensor, wanted in zip(node.inputs, required.of_inputs(node), strict=True):
            if wanted:
                first.setdefault(tensor, node)
    for node in required.nodes:
        reader = first.get(node.outputs[0])
        if reader is not None and _wants(node) and _reduces(reader, node.outputs[0]):
            graph.fused_reductions[reader] = node


def _wants(node: Node) -> bool:
    op = node.op
    return isinstance(op, BatchNorm) and not op.frozen and op.activation in OF_NORMALIZED


def _reduces(reader: Node, tensor: Tensor) -> bool:
    if joins_channels(reader) or reader.op.is_view or reader.inputs[0] is not tensor or reader.inputs.count(tensor) > 1:
        return False
    return reader.kernel.gathers_reductions(*(each.spec for each in reader.inputs))
