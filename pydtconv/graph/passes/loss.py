"""Softmax or sigmoid + cross-entropy of probabilities -> one stable operator with both results."""

from __future__ import annotations

from pydtconv.graph.ir.graph import Graph
from pydtconv.ops import Activation
from pydtconv.ops.cross_entropy import CrossEntropy
from pydtconv.ops.softmax import Softmax


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
