"""Anything with an `activation` attribute + activation -> the activation as that attribute."""

from __future__ import annotations

import dataclasses

from pydtconv.graph.ir.graph import Graph
from pydtconv.graph.ir.rewriting import absorb, consumers, sole_consumer
from pydtconv.ops import FUSABLE, Activation


def fuse_activation(graph: Graph) -> None:
    """act(op(...)) -> op(..., activation=act) for activations whose derivative follows from their output.

    Operators that have what they apply their activation to at hand in backward take some others as well.
    """
    readers = consumers(graph)
    for node in list(graph.nodes):
        if not node.op.takes_activation or node.op.activation is not None:
            continue
        consumer = sole_consumer(graph, node, readers)
        if consumer is None or not isinstance(consumer.op, Activation):
            continue
        smooth = not node.op.residual and consumer.op.kind in node.op.smooth_activations
        if consumer.op.kind not in FUSABLE and not smooth:
            continue
        alpha = consumer.op.parameters[0]
        if consumer.op.kind == "leaky_relu" and alpha <= 0:  # the sign of x does not follow from y
            continue
        op = dataclasses.replace(node.op, activation=consumer.op.kind, alpha=alpha)  # type: ignore[type-var]
        absorb(graph, node, consumer, op, node.inputs)
